{{/* Names and labels. A role is "pserver" or "trainer". */}}

{{- define "psrt.name" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "psrt.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Labels by which pods of a role are selected: (dict "root" $ "role" role). */}}
{{- define "psrt.selector" -}}
app.kubernetes.io/name: psrt
app.kubernetes.io/instance: {{ include "psrt.name" .root }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "psrt.labels" -}}
{{ include "psrt.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: psrt
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Labels of what belongs to both roles. */}}
{{- define "psrt.commonLabels" -}}
{{ include "psrt.labels" (dict "root" . "role" "job") }}
{{- end }}

{{/* The group of pods of a role, whose members are GROUP-0, GROUP-1, …; JobSet adds the number of
its Job. */}}
{{- define "psrt.group" -}}
{{ include "psrt.name" .root }}-{{ .role }}{{ if eq .root.Values.workload "jobset" }}-0{{ end }}
{{- end }}

{{- define "psrt.service" -}}
{{ include "psrt.name" .root }}-{{ .role }}
{{- end }}

{{/* Endpoints of all pservers, in their order. */}}
{{- define "psrt.endpoints" -}}
{{- $of := dict "root" . "role" "pserver" -}}
{{- range $i := until (int .Values.pservers.count) -}}
{{ if $i }},{{ end }}{{ include "psrt.group" $of }}-{{ $i }}.{{ include "psrt.service" $of }}.{{ $.Release.Namespace }}.svc:{{ $.Values.pservers.port }}
{{- end -}}
{{- end }}
