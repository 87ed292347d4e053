{{/* The pods of both roles, which differ in arguments, probes and restarts. */}}

{{/* Settings of psrt as variables: PSRT_SECTION_KEY. Those of the values precede those of the chart. */}}
{{- define "psrt.variables" -}}
{{- $v := .root.Values -}}
{{- $of := ternary $v.pservers $v.trainers (eq .role "pserver") -}}
{{- $own := dict -}}
{{- if $v.tls.secret -}}
{{- $_ := merge $own (dict "tls_cert" "/etc/psrt/tls/tls.crt" "tls_key" "/etc/psrt/tls/tls.key" "tls_ca" "/etc/psrt/tls/ca.crt") -}}
{{- else -}}
{{- $_ := set $own "insecure" true -}}
{{- end -}}
{{- if eq .role "pserver" -}}
{{- $_ := set $own "stopped_exit_code" 143 -}}
{{- if eq $v.workload "statefulset" -}}{{- $_ := set $own "stay" true -}}{{- end -}}
{{- if $v.checkpoints.enabled -}}
{{- $_ := set $own "checkpoint_dir" ($v.checkpoints.url | default $v.checkpoints.mountPath) -}}
{{- $_ := set $own "recover" $v.checkpoints.recover -}}
{{- end -}}
{{- if $v.tokens.pservers.secret -}}{{- $_ := set $own "token_file" (printf "/etc/psrt/tokens/%s" $v.tokens.pservers.key) -}}{{- end -}}
{{- else -}}
{{- $_ := set $own "connect_timeout_s" 600 -}}
{{- if $v.tokens.trainers.secret -}}{{- $_ := set $own "token_file" (printf "/etc/psrt/tokens/%s" $v.tokens.trainers.key) -}}{{- end -}}
{{- end -}}
- {name: HOME, value: /tmp}
{{- range $section, $keys := mergeOverwrite (dict .role $own) (deepCopy $v.settings) }}
{{- range $key, $value := $keys }}
- name: {{ printf "PSRT_%s_%s" $section $key | upper }}
  value: {{ if kindIs "slice" $value }}{{ join "," $value | quote }}{{ else }}{{ toString $value | quote }}{{ end }}
{{- end }}
{{- end }}
{{- range $name, $value := $v.variables }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- if eq .role "trainer" }}
- name: PSRT_TRAINER_TRAINER_ID
  valueFrom: {fieldRef: {fieldPath: "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
{{- end }}
{{- with $of.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "psrt.arguments" -}}
{{- $v := .root.Values -}}
{{- $job := printf "%s/%s" $v.job.directory $v.job.file -}}
{{- if eq .role "pserver" -}}
{{- $words := list "pserver" "--host" "0.0.0.0" "--port" $v.pservers.port "--metrics" (printf "0.0.0.0:%v" $v.pservers.metricsPort) "--num-gradient-servers" $v.trainers.count -}}
{{- if $v.job.file -}}{{- $words = concat $words (list "--config" $job) -}}{{- end -}}
{{- range concat $words $v.pservers.arguments }}
- {{ toString . | quote }}
{{- end }}
{{- else -}}
{{- $words := list "trainer" "--endpoints" (include "psrt.endpoints" .root) "--trainers" $v.trainers.count -}}
{{- range concat $words $v.trainers.arguments (list $job) }}
- {{ toString . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "psrt.probes" -}}
startupProbe:   # kernels that the image does not have are compiled first
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 5
  failureThreshold: 60
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}

{{- define "psrt.podTemplate" -}}
{{- $v := .root.Values -}}
{{- $of := ternary $v.pservers $v.trainers (eq .role "pserver") -}}
{{- $token := ternary $v.tokens.pservers $v.tokens.trainers (eq .role "pserver") -}}
{{- $hasClaim := and (eq .role "pserver") $v.checkpoints.enabled (not $v.checkpoints.url) -}}
metadata:
  labels:
    {{- include "psrt.labels" . | nindent 4 }}
  {{- with $of.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  subdomain: {{ include "psrt.service" . }}
  {{- if not (and (eq .role "pserver") (eq $v.workload "statefulset")) }}
  restartPolicy: Never   # a new pod for each try, so that logs of a failed one stay
  {{- end }}
  terminationGracePeriodSeconds: {{ $of.terminationGracePeriodSeconds }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $v.serviceAccountName }}
  serviceAccountName: {{ . }}
  {{- end }}
  {{- with $v.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    {{- toYaml $v.podSecurityContext | nindent 4 }}
  containers:
    - name: {{ .role }}
      image: {{ include "psrt.image" .root }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      args:
        {{- include "psrt.arguments" . | trim | nindent 8 }}
      env:
        {{- include "psrt.variables" . | nindent 8 }}
      {{- if eq .role "pserver" }}
      ports:
        - {name: grpc, containerPort: {{ $v.pservers.port }}}
        - {name: metrics, containerPort: {{ $v.pservers.metricsPort }}}
      {{- include "psrt.probes" . | nindent 6 }}
      {{- end }}
      securityContext:
        {{- toYaml $v.securityContext | nindent 8 }}
      resources:
        {{- toYaml $of.resources | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- if or $v.job.files $v.job.configMap }}
        - {name: job, mountPath: {{ $v.job.directory }}, readOnly: true}
        {{- end }}
        {{- if $hasClaim }}
        - {name: cuts, mountPath: {{ $v.checkpoints.mountPath }}}
        {{- end }}
        {{- if $v.tls.secret }}
        - {name: tls, mountPath: /etc/psrt/tls, readOnly: true}
        {{- end }}
        {{- if $token.secret }}
        - {name: tokens, mountPath: /etc/psrt/tokens, readOnly: true}
        {{- end }}
        {{- with $v.volumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: {}
    {{- if $v.job.configMap }}
    - name: job
      configMap: {name: {{ $v.job.configMap }}}
    {{- else if $v.job.files }}
    - name: job
      configMap:
        name: {{ include "psrt.name" .root }}
        items:
          {{- range $path, $_ := $v.job.files }}
          - {key: {{ include "psrt.key" $path }}, path: {{ $path | quote }}}
          {{- end }}
    {{- end }}
    {{- if $hasClaim }}
    - name: cuts
      persistentVolumeClaim: {claimName: {{ $v.checkpoints.claim | default (printf "%s-cuts" (include "psrt.name" .root)) }}}
    {{- end }}
    {{- if $v.tls.secret }}
    - name: tls
      secret: {secretName: {{ $v.tls.secret }}, defaultMode: 0400}   # fsGroup adds its own right
    {{- end }}
    {{- if $token.secret }}
    - name: tokens
      secret: {secretName: {{ $token.secret }}, defaultMode: 0400}
    {{- end }}
    {{- with $v.volumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $of.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $of.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $of.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $of.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    {{- with $of.topologySpreadConstraints }}
    {{- toYaml . | nindent 4 }}
    {{- else }}
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "psrt.selector" . | nindent 10 }}
    {{- end }}
{{- end }}

{{/* The key of a file in a ConfigMap, which has no slashes. */}}
{{- define "psrt.key" -}}
{{ . | replace "/" "__" }}
{{- end }}

{{/* The spec of an indexed Job for one role. */}}
{{- define "psrt.jobSpec" -}}
{{- $v := .root.Values -}}
{{- $of := ternary $v.pservers $v.trainers (eq .role "pserver") -}}
completionMode: Indexed
completions: {{ $of.count }}
parallelism: {{ $of.count }}
backoffLimit: {{ $of.restarts }}
podReplacementPolicy: Failed   # never two processes of one number at a time
podFailurePolicy:
  rules:
    # Mistakes that another try would repeat: docs/reference/errors.md has the exit codes.
    - action: FailJob
      onExitCodes: {containerName: {{ .role }}, operator: In, values: [2, 10, 11, 20, 21, 35, 37, 41, 72, 76]}
    {{- if $of.restarts }}
    - action: Ignore
      onPodConditions: [{type: DisruptionTarget, status: "True"}]
    {{- end }}
template:
  {{- include "psrt.podTemplate" . | nindent 2 }}
{{- end }}

{{- define "psrt.job" -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "psrt.group" . }}
  labels:
    {{- include "psrt.labels" . | nindent 4 }}
spec:
  ttlSecondsAfterFinished: {{ .root.Values.ttlSecondsAfterFinished }}
  {{- include "psrt.jobSpec" . | nindent 2 }}
{{- end }}
