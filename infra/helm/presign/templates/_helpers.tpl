{{- define "presign.name" -}}
{{- $base := ternary .Release.Name (printf "%s-presign" .Release.Name) (contains "presign" .Release.Name) -}}
{{- printf "%s-%s" (trunc 50 $base) .part -}}
{{- end -}}

{{- define "presign.selector" -}}
app.kubernetes.io/name: presign
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- define "presign.labels" -}}
{{ include "presign.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "presign.image" -}}
{{- $app := ternary "gateway" "issuer" (eq .part "gateway") -}}
{{- $own := index .Values $app "tag" -}}
{{- if eq .part "migrate" }}{{ $own = .Values.migrate.tag | default $own }}{{ end -}}
{{ printf "%spresign-%s:%s" .Values.image.prefix $app ($own | default .Values.image.tag | default .Chart.AppVersion) }}
{{- end -}}

{{- define "presign.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "presign.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* The keys of the Secret that a part gets, as "NAME" or "NAME=KEY". The signing key is the issuer's alone. */}}
{{- define "presign.secrets" -}}
{{- $names := list (printf "DATABASE_URL=%s" (ternary .Values.secret.migrateDatabaseUrl "DATABASE_URL" (eq .part "migrate"))) -}}
{{- if ne .part "migrate" -}}
{{- $names = concat $names (list "REDIS_URL" "ENCRYPTION_KEYS" "TOKEN_PUBLIC_KEYS") -}}
{{- if .Values.secret.httpsProxy }}{{ $names = append $names "HTTPS_PROXY" }}{{ end -}}
{{- end -}}
{{- if eq .part "issuer" -}}
{{- $names = append $names "TOKEN_SIGNING_KEY" -}}
{{- if .Values.secret.bootstrapApiKey }}{{ $names = append $names "BOOTSTRAP_API_KEY" }}{{ end -}}
{{- if .Values.secret.archiveKey }}{{ $names = concat $names (list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY") }}{{ end -}}
{{- end -}}
{{- join "," $names -}}
{{- end -}}

{{- define "presign.secretEnv" -}}
{{- range splitList "," (include "presign.secrets" .) }}
{{- $name := first (splitList "=" .) }}
- name: {{ $name }}_FILE
  value: /run/secrets/presign/{{ $name }}
{{- end }}
{{- end -}}

{{- define "presign.secretVolume" -}}
- name: secrets
  secret:
    secretName: {{ .Values.secret.name }}
    defaultMode: 0440
    items:
      {{- range splitList "," (include "presign.secrets" .) }}
      {{- $pair := splitList "=" . }}
      - key: {{ last $pair }}
        path: {{ first $pair }}
      {{- end }}
{{- end -}}
