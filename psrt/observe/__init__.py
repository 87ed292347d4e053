"""observe: a look into a running process over HTTP, read-only.

Values are read from counters and state when somebody asks, so that calls and steps pay
little: durations alone are counted as they happen.
Reading order:

    catalogue     every metric: name, type, labels, help
    durations     histograms of durations, counted by each thread for itself
    gil_probe     waits for the interpreter's lock, measured four times a second
    error_counts  errors of a process by code, with the newest of each
    metric_page   values of one moment, checked against the catalogue, as families of metrics
    process_facts version and memory limit of a process
    host_names    names under which browsers may call a process
    http_server   a small HTTP server: few connections, short timeouts, GET alone
    observation   the pages of a process: /metrics, /healthz, /readyz, /status.json
    traces        spans of a process to a collector, by OpenTelemetry
    watching      files for Prometheus and Grafana
"""
