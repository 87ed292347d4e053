"""How a trainer's gradients reach the pservers and how parameters come back.

Reading order: `base` says what every communicator promises the trainer, `known_ids` which lists of
ids need not be sent again, `requests` what one pserver is sent and where its reply goes,
`residuals` what narrow gradients have lost, `router` turns gradients into parts per pserver,
`snapshots` keeps the buffers parameters arrive in, `lanes` is small threads for each pserver,
`pservers` speaks to all of them at once, `over_pservers` is what communicators have in common.

    a step is one call     stepwise, which takes its turns from sync (rounds) or half_async
    gradients wait         gradient_queue · merge_queue · background (threads) · sender
    and parameters return  dense_pulls · queued, which takes them from async_ or ssp (a gate)
    trained on trainers    local_table · geo_table · geo_dense · geo_agreement · geo_rhythm · geo

`factory` chooses.
"""
