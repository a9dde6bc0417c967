{{- define "agent.labels" -}}
app.kubernetes.io/name: agent
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "agent.metadata" -}}
name: {{ .Release.Name }}
labels:
  {{- include "agent.labels" . | nindent 2 }}
annotations:
  example.com/tag: {{ .Values.tag }}
{{- end -}}

{{- /* The pods of the daemon, and not those of hooks. */ -}}
{{- define "agent.selector" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: daemon
{{- end -}}
