{{- define "polyrow.name" -}}
{{- if contains "polyrow" .Release.Name -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}{{ printf "%s-polyrow" .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "polyrow.labels" -}}
{{ include "polyrow.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "polyrow.selector" -}}
app.kubernetes.io/name: polyrow
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "polyrow.secret" -}}
{{ default (include "polyrow.name" .) .Values.secretName }}
{{- end -}}

{{- define "polyrow.image" -}}
{{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end -}}

{{- define "polyrow.seeds" -}}
{{- $name := include "polyrow.name" . -}}
{{- $seeds := list -}}
{{- range $i := until (int .Values.nodes) -}}
{{- $seeds = append $seeds (printf "%s-%d.%s-nodes.%s.svc:7073" $name $i $name $.Release.Namespace) -}}
{{- end -}}
{{- join "," $seeds -}}
{{- end -}}

{{- define "polyrow.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}
