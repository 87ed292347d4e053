"""Charts from the figures of `rows_by_size` and `latency`.

In reading order:

    __main__   the command: `python -m benchmarks.pictures`
    drawing    one chart for each axis, and one of latencies
    svg_chart  a line chart as SVG text
"""
