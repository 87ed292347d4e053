from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Method(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    METHOD_UNSPECIFIED: _ClassVar[Method]
    METHOD_HELLO: _ClassVar[Method]
    METHOD_REGISTER: _ClassVar[Method]
    METHOD_PULL: _ClassVar[Method]
    METHOD_PUSH: _ClassVar[Method]
    METHOD_EXCHANGE: _ClassVar[Method]
    METHOD_COMPLETE: _ClassVar[Method]
    METHOD_EXPORT: _ClassVar[Method]
    METHOD_STATUS: _ClassVar[Method]
    METHOD_MEET: _ClassVar[Method]
    METHOD_RECORDS: _ClassVar[Method]
    METHOD_SHRINK: _ClassVar[Method]
    METHOD_WATCH: _ClassVar[Method]
    METHOD_CUT: _ClassVar[Method]
    METHOD_PART: _ClassVar[Method]
    METHOD_CHECKPOINT: _ClassVar[Method]
    METHOD_RESENT: _ClassVar[Method]
    METHOD_ATTEND: _ClassVar[Method]
    METHOD_KEEP_STATE: _ClassVar[Method]
    METHOD_READ_STATE: _ClassVar[Method]
    METHOD_GIVE: _ClassVar[Method]
    METHOD_REPLICATE: _ClassVar[Method]
    METHOD_OPEN: _ClassVar[Method]
    METHOD_DEPOSE: _ClassVar[Method]

class DType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DTYPE_UNSPECIFIED: _ClassVar[DType]
    DTYPE_FLOAT32: _ClassVar[DType]
    DTYPE_INT64: _ClassVar[DType]
    DTYPE_FLOAT64: _ClassVar[DType]
    DTYPE_INT32: _ClassVar[DType]
    DTYPE_UINT8: _ClassVar[DType]
    DTYPE_FLOAT16: _ClassVar[DType]
    DTYPE_BFLOAT16: _ClassVar[DType]
    DTYPE_INT8: _ClassVar[DType]

class PartKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PART_UNSPECIFIED: _ClassVar[PartKind]
    PART_PUSH_DENSE: _ClassVar[PartKind]
    PART_PUSH_ROWS: _ClassVar[PartKind]
    PART_PULL_DENSE: _ClassVar[PartKind]
    PART_PULL_ROWS: _ClassVar[PartKind]
    PART_PULL_CHANGED: _ClassVar[PartKind]
METHOD_UNSPECIFIED: Method
METHOD_HELLO: Method
METHOD_REGISTER: Method
METHOD_PULL: Method
METHOD_PUSH: Method
METHOD_EXCHANGE: Method
METHOD_COMPLETE: Method
METHOD_EXPORT: Method
METHOD_STATUS: Method
METHOD_MEET: Method
METHOD_RECORDS: Method
METHOD_SHRINK: Method
METHOD_WATCH: Method
METHOD_CUT: Method
METHOD_PART: Method
METHOD_CHECKPOINT: Method
METHOD_RESENT: Method
METHOD_ATTEND: Method
METHOD_KEEP_STATE: Method
METHOD_READ_STATE: Method
METHOD_GIVE: Method
METHOD_REPLICATE: Method
METHOD_OPEN: Method
METHOD_DEPOSE: Method
DTYPE_UNSPECIFIED: DType
DTYPE_FLOAT32: DType
DTYPE_INT64: DType
DTYPE_FLOAT64: DType
DTYPE_INT32: DType
DTYPE_UINT8: DType
DTYPE_FLOAT16: DType
DTYPE_BFLOAT16: DType
DTYPE_INT8: DType
PART_UNSPECIFIED: PartKind
PART_PUSH_DENSE: PartKind
PART_PUSH_ROWS: PartKind
PART_PULL_DENSE: PartKind
PART_PULL_ROWS: PartKind
PART_PULL_CHANGED: PartKind

class Tensor(_message.Message):
    __slots__ = ("dtype", "shape", "offset")
    DTYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    dtype: DType
    shape: _containers.RepeatedScalarFieldContainer[int]
    offset: int
    def __init__(self, dtype: _Optional[_Union[DType, str]] = ..., shape: _Optional[_Iterable[int]] = ..., offset: _Optional[int] = ...) -> None: ...

class Part(_message.Message):
    __slots__ = ("kind", "table", "version", "position", "wire", "keys", "factor", "counts", "rate", "sums")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    WIRE_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    kind: PartKind
    table: str
    version: int
    position: int
    wire: DType
    keys: int
    factor: float
    counts: bool
    rate: float
    sums: bool
    def __init__(self, kind: _Optional[_Union[PartKind, str]] = ..., table: _Optional[str] = ..., version: _Optional[int] = ..., position: _Optional[int] = ..., wire: _Optional[_Union[DType, str]] = ..., keys: _Optional[int] = ..., factor: _Optional[float] = ..., counts: _Optional[bool] = ..., rate: _Optional[float] = ..., sums: _Optional[bool] = ...) -> None: ...

class PushKey(_message.Message):
    __slots__ = ("incarnation", "sequence")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    incarnation: int
    sequence: int
    def __init__(self, incarnation: _Optional[int] = ..., sequence: _Optional[int] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("job_id", "plan_hash", "trainers", "mode", "software", "run", "durability", "plan")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PLAN_HASH_FIELD_NUMBER: _ClassVar[int]
    TRAINERS_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    DURABILITY_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    plan_hash: str
    trainers: int
    mode: str
    software: str
    run: str
    durability: str
    plan: str
    def __init__(self, job_id: _Optional[str] = ..., plan_hash: _Optional[str] = ..., trainers: _Optional[int] = ..., mode: _Optional[str] = ..., software: _Optional[str] = ..., run: _Optional[str] = ..., durability: _Optional[str] = ..., plan: _Optional[str] = ...) -> None: ...

class HelloReply(_message.Message):
    __slots__ = ("data_endpoints", "unix_path", "host_id", "incarnation", "process", "held_by", "held_is_new", "software", "makes_cuts", "shared_bytes")
    DATA_ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    UNIX_PATH_FIELD_NUMBER: _ClassVar[int]
    HOST_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    HELD_BY_FIELD_NUMBER: _ClassVar[int]
    HELD_IS_NEW_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    MAKES_CUTS_FIELD_NUMBER: _ClassVar[int]
    SHARED_BYTES_FIELD_NUMBER: _ClassVar[int]
    data_endpoints: _containers.RepeatedScalarFieldContainer[str]
    unix_path: str
    host_id: str
    incarnation: int
    process: int
    held_by: int
    held_is_new: bool
    software: str
    makes_cuts: bool
    shared_bytes: int
    def __init__(self, data_endpoints: _Optional[_Iterable[str]] = ..., unix_path: _Optional[str] = ..., host_id: _Optional[str] = ..., incarnation: _Optional[int] = ..., process: _Optional[int] = ..., held_by: _Optional[int] = ..., held_is_new: _Optional[bool] = ..., software: _Optional[str] = ..., makes_cuts: _Optional[bool] = ..., shared_bytes: _Optional[int] = ...) -> None: ...

class Register(_message.Message):
    __slots__ = ("specs", "pservers", "predecessor", "begins_anew", "warm_start", "parameters", "report", "lineage")
    SPECS_FIELD_NUMBER: _ClassVar[int]
    PSERVERS_FIELD_NUMBER: _ClassVar[int]
    PREDECESSOR_FIELD_NUMBER: _ClassVar[int]
    BEGINS_ANEW_FIELD_NUMBER: _ClassVar[int]
    WARM_START_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    specs: _containers.RepeatedScalarFieldContainer[str]
    pservers: _containers.RepeatedCompositeFieldContainer[PserverProcess]
    predecessor: int
    begins_anew: bool
    warm_start: str
    parameters: _containers.RepeatedScalarFieldContainer[str]
    report: str
    lineage: Lineage
    def __init__(self, specs: _Optional[_Iterable[str]] = ..., pservers: _Optional[_Iterable[_Union[PserverProcess, _Mapping]]] = ..., predecessor: _Optional[int] = ..., begins_anew: _Optional[bool] = ..., warm_start: _Optional[str] = ..., parameters: _Optional[_Iterable[str]] = ..., report: _Optional[str] = ..., lineage: _Optional[_Union[Lineage, _Mapping]] = ...) -> None: ...

class Lineage(_message.Message):
    __slots__ = ("origin", "settled", "position", "following", "bucket", "covered", "completed", "keeps_reads", "ended")
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    FOLLOWING_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    COVERED_FIELD_NUMBER: _ClassVar[int]
    COMPLETED_FIELD_NUMBER: _ClassVar[int]
    KEEPS_READS_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    origin: int
    settled: int
    position: str
    following: str
    bucket: int
    covered: _containers.RepeatedCompositeFieldContainer[Covered]
    completed: bool
    keeps_reads: bool
    ended: bool
    def __init__(self, origin: _Optional[int] = ..., settled: _Optional[int] = ..., position: _Optional[str] = ..., following: _Optional[str] = ..., bucket: _Optional[int] = ..., covered: _Optional[_Iterable[_Union[Covered, _Mapping]]] = ..., completed: _Optional[bool] = ..., keeps_reads: _Optional[bool] = ..., ended: _Optional[bool] = ...) -> None: ...

class Covered(_message.Message):
    __slots__ = ("name", "first", "last", "bucket")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    BUCKET_FIELD_NUMBER: _ClassVar[int]
    name: str
    first: int
    last: int
    bucket: int
    def __init__(self, name: _Optional[str] = ..., first: _Optional[int] = ..., last: _Optional[int] = ..., bucket: _Optional[int] = ...) -> None: ...

class PserverProcess(_message.Message):
    __slots__ = ("endpoint", "incarnation")
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    endpoint: str
    incarnation: int
    def __init__(self, endpoint: _Optional[str] = ..., incarnation: _Optional[int] = ...) -> None: ...

class Complete(_message.Message):
    __slots__ = ("will_confirm", "confirms", "ended", "recorded", "position", "interrupted")
    WILL_CONFIRM_FIELD_NUMBER: _ClassVar[int]
    CONFIRMS_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    RECORDED_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    INTERRUPTED_FIELD_NUMBER: _ClassVar[int]
    will_confirm: bool
    confirms: bool
    ended: bool
    recorded: bool
    position: str
    interrupted: bool
    def __init__(self, will_confirm: _Optional[bool] = ..., confirms: _Optional[bool] = ..., ended: _Optional[bool] = ..., recorded: _Optional[bool] = ..., position: _Optional[str] = ..., interrupted: _Optional[bool] = ...) -> None: ...

class Export(_message.Message):
    __slots__ = ("table", "cursor", "max_rows")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    MAX_ROWS_FIELD_NUMBER: _ClassVar[int]
    table: str
    cursor: int
    max_rows: int
    def __init__(self, table: _Optional[str] = ..., cursor: _Optional[int] = ..., max_rows: _Optional[int] = ...) -> None: ...

class ExportReply(_message.Message):
    __slots__ = ("next_cursor",)
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    next_cursor: int
    def __init__(self, next_cursor: _Optional[int] = ...) -> None: ...

class Meet(_message.Message):
    __slots__ = ("clock", "reached", "awaited", "note", "begins")
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    REACHED_FIELD_NUMBER: _ClassVar[int]
    AWAITED_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    BEGINS_FIELD_NUMBER: _ClassVar[int]
    clock: str
    reached: int
    awaited: int
    note: str
    begins: bool
    def __init__(self, clock: _Optional[str] = ..., reached: _Optional[int] = ..., awaited: _Optional[int] = ..., note: _Optional[str] = ..., begins: _Optional[bool] = ...) -> None: ...

class MeetReply(_message.Message):
    __slots__ = ("slowest", "notes", "begin")
    SLOWEST_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    slowest: int
    notes: _containers.RepeatedScalarFieldContainer[str]
    begin: int
    def __init__(self, slowest: _Optional[int] = ..., notes: _Optional[_Iterable[str]] = ..., begin: _Optional[int] = ...) -> None: ...

class Shrink(_message.Message):
    __slots__ = ("tables", "number", "dry_run")
    TABLES_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    tables: _containers.RepeatedScalarFieldContainer[str]
    number: int
    dry_run: bool
    def __init__(self, tables: _Optional[_Iterable[str]] = ..., number: _Optional[int] = ..., dry_run: _Optional[bool] = ...) -> None: ...

class Dropped(_message.Message):
    __slots__ = ("table", "rows", "bytes")
    class RowsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    table: str
    rows: _containers.ScalarMap[str, int]
    bytes: int
    def __init__(self, table: _Optional[str] = ..., rows: _Optional[_Mapping[str, int]] = ..., bytes: _Optional[int] = ...) -> None: ...

class ShrinkReply(_message.Message):
    __slots__ = ("tables",)
    TABLES_FIELD_NUMBER: _ClassVar[int]
    tables: _containers.RepeatedCompositeFieldContainer[Dropped]
    def __init__(self, tables: _Optional[_Iterable[_Union[Dropped, _Mapping]]] = ...) -> None: ...

class Cut(_message.Message):
    __slots__ = ("number", "position", "last_push", "newest", "complete", "positions", "trainers", "anew", "hurry")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    LAST_PUSH_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    TRAINERS_FIELD_NUMBER: _ClassVar[int]
    ANEW_FIELD_NUMBER: _ClassVar[int]
    HURRY_FIELD_NUMBER: _ClassVar[int]
    number: int
    position: str
    last_push: int
    newest: int
    complete: int
    positions: _containers.RepeatedScalarFieldContainer[str]
    trainers: int
    anew: bool
    hurry: bool
    def __init__(self, number: _Optional[int] = ..., position: _Optional[str] = ..., last_push: _Optional[int] = ..., newest: _Optional[int] = ..., complete: _Optional[int] = ..., positions: _Optional[_Iterable[str]] = ..., trainers: _Optional[int] = ..., anew: _Optional[bool] = ..., hurry: _Optional[bool] = ...) -> None: ...

class CutPart(_message.Message):
    __slots__ = ("number", "endpoint", "record", "problem")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ENDPOINT_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    number: int
    endpoint: str
    record: str
    problem: str
    def __init__(self, number: _Optional[int] = ..., endpoint: _Optional[str] = ..., record: _Optional[str] = ..., problem: _Optional[str] = ...) -> None: ...

class StatePage(_message.Message):
    __slots__ = ("cut", "trainer", "page", "meta", "arrays", "last", "trainers")
    CUT_FIELD_NUMBER: _ClassVar[int]
    TRAINER_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    META_FIELD_NUMBER: _ClassVar[int]
    ARRAYS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    TRAINERS_FIELD_NUMBER: _ClassVar[int]
    cut: int
    trainer: int
    page: int
    meta: str
    arrays: _containers.RepeatedScalarFieldContainer[str]
    last: bool
    trainers: int
    def __init__(self, cut: _Optional[int] = ..., trainer: _Optional[int] = ..., page: _Optional[int] = ..., meta: _Optional[str] = ..., arrays: _Optional[_Iterable[str]] = ..., last: _Optional[bool] = ..., trainers: _Optional[int] = ...) -> None: ...

class Replica(_message.Message):
    __slots__ = ("part", "epoch", "tick", "piece", "last", "incarnation", "facts", "whole", "endpoints", "serves", "is_copy", "waits_for")
    PART_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TICK_FIELD_NUMBER: _ClassVar[int]
    PIECE_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    ENDPOINTS_FIELD_NUMBER: _ClassVar[int]
    SERVES_FIELD_NUMBER: _ClassVar[int]
    IS_COPY_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_FIELD_NUMBER: _ClassVar[int]
    part: int
    epoch: int
    tick: int
    piece: int
    last: bool
    incarnation: int
    facts: str
    whole: bool
    endpoints: _containers.RepeatedScalarFieldContainer[str]
    serves: bool
    is_copy: bool
    waits_for: str
    def __init__(self, part: _Optional[int] = ..., epoch: _Optional[int] = ..., tick: _Optional[int] = ..., piece: _Optional[int] = ..., last: _Optional[bool] = ..., incarnation: _Optional[int] = ..., facts: _Optional[str] = ..., whole: _Optional[bool] = ..., endpoints: _Optional[_Iterable[str]] = ..., serves: _Optional[bool] = ..., is_copy: _Optional[bool] = ..., waits_for: _Optional[str] = ...) -> None: ...

class Access(_message.Message):
    __slots__ = ("token", "nonce", "proof", "session")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    PROOF_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    token: str
    nonce: bytes
    proof: bytes
    session: str
    def __init__(self, token: _Optional[str] = ..., nonce: _Optional[bytes] = ..., proof: _Optional[bytes] = ..., session: _Optional[str] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("code", "message", "hint")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    HINT_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    hint: str
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., hint: _Optional[str] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("protocol", "method", "request_id", "reply", "trainer", "timeout_ms", "push_key", "round", "step", "parts", "tensors", "error", "hello", "hello_reply", "register", "export", "export_reply", "status_json", "payload_bytes", "payload_start", "meet", "meet_reply", "shrink", "shrink_reply", "cut", "cut_part", "complete", "lineage", "state_page", "durable_to", "part", "replica", "deposed", "process", "access", "traceparent", "padding")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    REPLY_FIELD_NUMBER: _ClassVar[int]
    TRAINER_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    PUSH_KEY_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    HELLO_REPLY_FIELD_NUMBER: _ClassVar[int]
    REGISTER_FIELD_NUMBER: _ClassVar[int]
    EXPORT_FIELD_NUMBER: _ClassVar[int]
    EXPORT_REPLY_FIELD_NUMBER: _ClassVar[int]
    STATUS_JSON_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_BYTES_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_START_FIELD_NUMBER: _ClassVar[int]
    MEET_FIELD_NUMBER: _ClassVar[int]
    MEET_REPLY_FIELD_NUMBER: _ClassVar[int]
    SHRINK_FIELD_NUMBER: _ClassVar[int]
    SHRINK_REPLY_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    CUT_PART_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    LINEAGE_FIELD_NUMBER: _ClassVar[int]
    STATE_PAGE_FIELD_NUMBER: _ClassVar[int]
    DURABLE_TO_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    REPLICA_FIELD_NUMBER: _ClassVar[int]
    DEPOSED_FIELD_NUMBER: _ClassVar[int]
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    PADDING_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    method: Method
    request_id: int
    reply: bool
    trainer: int
    timeout_ms: int
    push_key: PushKey
    round: int
    step: int
    parts: _containers.RepeatedCompositeFieldContainer[Part]
    tensors: _containers.RepeatedCompositeFieldContainer[Tensor]
    error: Error
    hello: Hello
    hello_reply: HelloReply
    register: Register
    export: Export
    export_reply: ExportReply
    status_json: str
    payload_bytes: int
    payload_start: int
    meet: Meet
    meet_reply: MeetReply
    shrink: Shrink
    shrink_reply: ShrinkReply
    cut: Cut
    cut_part: CutPart
    complete: Complete
    lineage: Lineage
    state_page: StatePage
    durable_to: int
    part: int
    replica: Replica
    deposed: _containers.RepeatedCompositeFieldContainer[Replica]
    process: int
    access: Access
    traceparent: str
    padding: bytes
    def __init__(self, protocol: _Optional[int] = ..., method: _Optional[_Union[Method, str]] = ..., request_id: _Optional[int] = ..., reply: _Optional[bool] = ..., trainer: _Optional[int] = ..., timeout_ms: _Optional[int] = ..., push_key: _Optional[_Union[PushKey, _Mapping]] = ..., round: _Optional[int] = ..., step: _Optional[int] = ..., parts: _Optional[_Iterable[_Union[Part, _Mapping]]] = ..., tensors: _Optional[_Iterable[_Union[Tensor, _Mapping]]] = ..., error: _Optional[_Union[Error, _Mapping]] = ..., hello: _Optional[_Union[Hello, _Mapping]] = ..., hello_reply: _Optional[_Union[HelloReply, _Mapping]] = ..., register: _Optional[_Union[Register, _Mapping]] = ..., export: _Optional[_Union[Export, _Mapping]] = ..., export_reply: _Optional[_Union[ExportReply, _Mapping]] = ..., status_json: _Optional[str] = ..., payload_bytes: _Optional[int] = ..., payload_start: _Optional[int] = ..., meet: _Optional[_Union[Meet, _Mapping]] = ..., meet_reply: _Optional[_Union[MeetReply, _Mapping]] = ..., shrink: _Optional[_Union[Shrink, _Mapping]] = ..., shrink_reply: _Optional[_Union[ShrinkReply, _Mapping]] = ..., cut: _Optional[_Union[Cut, _Mapping]] = ..., cut_part: _Optional[_Union[CutPart, _Mapping]] = ..., complete: _Optional[_Union[Complete, _Mapping]] = ..., lineage: _Optional[_Union[Lineage, _Mapping]] = ..., state_page: _Optional[_Union[StatePage, _Mapping]] = ..., durable_to: _Optional[int] = ..., part: _Optional[int] = ..., replica: _Optional[_Union[Replica, _Mapping]] = ..., deposed: _Optional[_Iterable[_Union[Replica, _Mapping]]] = ..., process: _Optional[int] = ..., access: _Optional[_Union[Access, _Mapping]] = ..., traceparent: _Optional[str] = ..., padding: _Optional[bytes] = ...) -> None: ...

class Frame(_message.Message):
    __slots__ = ("header", "payload")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    header: Header
    payload: bytes
    def __init__(self, header: _Optional[_Union[Header, _Mapping]] = ..., payload: _Optional[bytes] = ...) -> None: ...
