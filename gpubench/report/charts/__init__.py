"""Charts of reports: functions of data that return Vega-Lite specs."""
