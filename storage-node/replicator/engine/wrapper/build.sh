#!/usr/bin/env bash
# Builds ../raft.wasm.br, the same bytes on every machine, and ../raft.wasm.sha256 of the module before compression.
#   build.sh           builds and replaces both
#   build.sh --check   builds, and fails unless the module is the one that is committed
# Needs Go (another version fetches the pinned one) and Node.
set -euo pipefail
cd "$(dirname "$0")"
export GOTOOLCHAIN=go1.26.8 GOFLAGS=-mod=readonly GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The published library, checked against go.sum; in its copy the messages' generated code gives way to plain structs.
raft=$(GOOS='' GOARCH='' go mod download -json go.etcd.io/raft/v3 | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
cp -r "$raft" "$work/raft" && chmod -R u+w "$work/raft"
cp plain/raftpb/raft.pb.go "$work/raft/raftpb/raft.pb.go"
cp -r . "$work/wrapper" && cd "$work/wrapper"
go mod edit -replace=go.etcd.io/raft/v3=../raft
go build -trimpath -buildvcs=false -buildmode=c-shared -ldflags='-s -w -buildid=' -o "$work/raft.wasm" .
cd "$OLDPWD"
sum=$(sha256sum "$work/raft.wasm" | cut -d' ' -f1)
if [ "${1:-}" = --check ]; then
  [ "$sum" = "$(cat ../raft.wasm.sha256)" ] || { echo "built $sum, committed is $(cat ../raft.wasm.sha256)"; exit 1; }
  echo "the committed module is what these sources build"
  exit
fi
node -e '
  const { readFileSync, writeFileSync } = require("node:fs");
  const { brotliCompressSync, constants } = require("node:zlib");
  const wasm = readFileSync(process.argv[1]);
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: wasm.length };
  writeFileSync("../raft.wasm.br", brotliCompressSync(wasm, { params }));
' "$work/raft.wasm"
echo "$sum" > ../raft.wasm.sha256
ls -l ../raft.wasm.br "$work/raft.wasm"
