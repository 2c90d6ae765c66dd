#!/bin/sh
# Renders the chart and checks what comes of it against Kubernetes' schemas. Needs go and python3; downloads helm and
# kubernetes-validate. Kinds of values that change what is rendered are tried each.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! helm=$(command -v helm); then
  GOBIN="$work" go install helm.sh/helm/v3/cmd/helm@v3.18.6
  helm="$work/helm"
fi
python3 -m venv "$work/venv"
"$work/venv/bin/pip" --quiet install kubernetes-validate
"$helm" lint "$here/polyrow"
check() {
  # A helm that was built by go install knows no version of Kubernetes.
  "$helm" template database "$here/polyrow" --kube-version 1.31.0 --namespace data "$@" > "$work/rendered.yaml"
  "$work/venv/bin/kubernetes-validate" --strict "$work/rendered.yaml"
}
check
check --set nodes=5 --set zone.fromPodLabel=true --set storage.className=fast
check --set secretName=mine --set init.enabled=false --set zone.name=a --set 'tolerations[0].operator=Exists'
