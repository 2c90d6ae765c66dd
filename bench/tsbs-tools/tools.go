//go:build tools

// Package tools names the programs of TSBS that the benchmarks build, so that go.mod and go.sum fix their
// versions.
package tools

import (
	_ "github.com/timescale/tsbs/cmd/tsbs_generate_data"
	_ "github.com/timescale/tsbs/cmd/tsbs_generate_queries"
	_ "github.com/timescale/tsbs/cmd/tsbs_load_influx"
	_ "github.com/timescale/tsbs/cmd/tsbs_load_victoriametrics"
	_ "github.com/timescale/tsbs/cmd/tsbs_run_queries_influx"
)
