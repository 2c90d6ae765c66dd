//go:build tools

// Package tools names the program that the tests build, so that go.mod and go.sum fix its version.
package tools

import _ "github.com/influxdata/telegraf/cmd/telegraf"
