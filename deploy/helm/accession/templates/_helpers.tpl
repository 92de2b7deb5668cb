{{- define "accession.name" -}}
{{- printf "%s" .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "accession.selector" -}}
app.kubernetes.io/name: accession
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "accession.labels" -}}
{{ include "accession.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "accession.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "accession.locked" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- /* pod of one role: (dict "root" $ "roles" "api" "part" .Values.api) */}}
{{- define "accession.pod" -}}
{{- $root := .root }}
metadata:
  labels:
    {{- include "accession.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  {{- with $root.Values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "accession.name" $root }}
  automountServiceAccountToken: false
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  terminationGracePeriodSeconds: {{ $root.Values.terminationGracePeriodSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "accession.selector" $root | nindent 10 }}
          app.kubernetes.io/component: {{ .component }}
  initContainers:
    # A sidecar: it starts before the service and ends after it.
    - name: signatures
      image: {{ include "accession.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      restartPolicy: Always
      command: [freshclam, --daemon, --foreground, --config-file=/etc/accession/freshclam.conf]
      securityContext: {{- include "accession.locked" $root | nindent 8 }}
      resources: {{- toYaml $root.Values.signatures.resources | nindent 8 }}
      volumeMounts:
        - {name: signatures, mountPath: /var/lib/clamav}
        - {name: scratch, mountPath: /tmp}
  containers:
    - name: accession
      image: {{ include "accession.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: [serve, --roles, {{ .roles | quote }}]
      env:
        {{- range $name, $value := $root.Values.settings }}
        - {name: ACCESSION_{{ $name }}, value: {{ $value | toString | quote }}}
        {{- end }}
        - {name: ACCESSION_LISTEN, value: "0.0.0.0:8080"}
        - {name: ACCESSION_METRICS_LISTEN, value: "0.0.0.0:9090"}
        - {name: ACCESSION_ADMIN_TOKEN_FILE, value: /run/accession/admin-token}
        - {name: ACCESSION_DATABASE_FILE, value: /run/accession/database-url}
        {{- if $root.Values.keyFile }}
        - {name: ACCESSION_KEYS, value: /run/accession/key-encryption-key}
        {{- end }}
        # clamd and the workers of documents, processes of their own, share the memory limit.
        - {name: GOMEMLIMIT, value: 1GiB}
      envFrom:
        - secretRef: {name: {{ $root.Values.existingSecret }}-environment, optional: true}
      ports:
        - {name: http, containerPort: 8080}
        - {name: metrics, containerPort: 9090}
      securityContext: {{- include "accession.locked" $root | nindent 8 }}
      # A start brings the schema forward and loads keys; signatures are not waited for.
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 2
        failureThreshold: 150
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 4
        failureThreshold: 2
      resources: {{- toYaml .part.resources | nindent 8 }}
      volumeMounts:
        - {name: secrets, mountPath: /run/accession, readOnly: true}
        - {name: data, mountPath: /var/lib/accession}
        - {name: cache, mountPath: /var/cache/accession}
        - {name: signatures, mountPath: /var/lib/clamav, readOnly: true}
        - {name: memory, mountPath: /dev/shm}
        - {name: scratch, mountPath: /tmp}
  volumes:
    - name: secrets
      secret:
        secretName: {{ $root.Values.existingSecret }}
        defaultMode: 0440
        items:
          - {key: admin-token, path: admin-token}
          - {key: database-url, path: database-url}
          {{- if $root.Values.keyFile }}
          - {key: key-encryption-key, path: key-encryption-key}
          {{- end }}
    # Sockets and a lock: nothing that must outlive the pod.
    - {name: data, emptyDir: {sizeLimit: 1Gi}}
    - {name: cache, emptyDir: {sizeLimit: 1Gi}}
    - {name: signatures, emptyDir: {sizeLimit: 2Gi}}
    - {name: scratch, emptyDir: {sizeLimit: 1Gi}}
    - {name: memory, emptyDir: {medium: Memory, sizeLimit: {{ $root.Values.memoryFiles }}}}
  {{- with $root.Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
