"""Every benchmark explains its arguments, so none is broken where it begins."""

import runpy
import signal
from pathlib import Path

import pytest

import benchmarks

_FOLDER = Path(benchmarks.__file__).parent


def _scripts():
    paths = sorted([*_FOLDER.glob("*.py"), *_FOLDER.glob("*/__main__.py")])
    return [path for path in paths if '__name__ == "__main__"' in path.read_text()]


@pytest.fixture(autouse=True)
def handled_as_before():
    """Benchmarks are commands: one takes SIGTERM for itself."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


@pytest.mark.parametrize("script", _scripts(), ids=lambda path: str(path.relative_to(_FOLDER)))
def test_help_explains_a_benchmark(script, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", [str(script), "--help"])
    with pytest.raises(SystemExit) as exit_:
        runpy.run_path(str(script), run_name="__main__")
    written = capsys.readouterr()
    if "is not installed" in written.err:
        pytest.skip(written.err.strip())
    assert exit_.value.code == 0
    assert "usage:" in written.out.lower()
