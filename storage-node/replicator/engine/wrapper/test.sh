#!/usr/bin/env bash
# Tests of the module's sources, native: the plain messages against the published encoding, then upstream's own
# tests on the library as it is built into the module. Needs Go and the module proxy.
set -euo pipefail
cd "$(dirname "$0")"
export GOTOOLCHAIN=go1.26.8 GOFLAGS=-mod=mod
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
raft=$(go mod download -json go.etcd.io/raft/v3 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')

cp -r fuzz "$work/fuzz"
mkdir -p "$work/fuzz/plain/proto" "$work/fuzz/plain/raftpb"
cp plain/protobuf/proto/proto.go "$work/fuzz/plain/proto/"
sed 's#google.golang.org/protobuf/proto#polyrow.raft/fuzz/plain/proto#' plain/raftpb/raft.pb.go > "$work/fuzz/plain/raftpb/raft.pb.go"
(cd "$work/fuzz" && go vet . && go test ./...)

cp -r "$raft" "$work/raft" && chmod -R u+w "$work/raft"
cp plain/raftpb/raft.pb.go "$work/raft/raftpb/raft.pb.go"
cp -r plain/protobuf "$work/protobuf"
# These look at the form of the generated code: its text output, its number of fields, its size in memory.
skipped='^(TestNodeProposeWaitDropped|TestLeaveJoint|TestProtoMemorySizes)$'
cd "$work/raft"
go mod edit -replace=google.golang.org/protobuf=../protobuf
go test ./... -skip "$skipped" "$@"
