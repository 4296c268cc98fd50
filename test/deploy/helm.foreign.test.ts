import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SECRETS, VARIABLES } from '@presign/service';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { codeIn } from '../docs/fences.ts';
import { KUBERNETES, writeSchemas } from './kubernetes-schemas.ts';

const { deploy } = inject('toolchains');
const tool = (name: string) => ('at' in deploy ? join(deploy.at, name) : '');
const CHART = join(import.meta.dirname, '../../infra/helm/presign');

const LEAST = ['issuerUrl=https://presign.example.com', 'gatewayUrl=https://gateway.example.com'];
const EVERYTHING = [
  ...LEAST,
  ...['image.prefix=registry.example.com/team/', 'image.tag=1.2.3', 'image.pullSecrets[0].name=pull'],
  ...[
    'secret.httpsProxy=true',
    'secret.archiveKey=true',
    'issuer.env.ARCHIVE_S3=s3://archive',
    'secret.migrateDatabaseUrl=MIGRATE_DATABASE_URL',
    'gateway.tag=1.2.4',
  ],
  ...['env.LOG_LEVEL=warn', 'gateway.env.LOG_LEVEL=debug', 'gateway.podAnnotations.team=a'],
  ...['files.providers\\.json=\\{\\}', 'metrics.serviceMonitor.enabled=true', 'gateway.preStopSeconds=30'],
  ...['gateway.graceSeconds=600', 'gateway.nodeSelector.disk=ssd', 'gateway.service.annotations.a=b'],
  ...['networkPolicy.storesTo[0].podSelector.matchLabels.app=postgres', 'issuer.replicas=3'],
  ...['networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring'],
];
const VARIANTS = [
  ['least', LEAST],
  ['everything', EVERYTHING],
  [
    'nothing that is optional',
    [
      ...LEAST,
      ...['metrics', 'migrate', 'networkPolicy', 'gateway.autoscaling'].map(
        (part) => `${part}.enabled=false`,
      ),
    ],
  ],
] as const;

const sets = (values: readonly string[]) => values.flatMap((value) => ['--set', value]);
const render = (values: readonly string[]) =>
  execFileSync(tool('helm'), ['template', 'presign', CHART, '--kube-version', KUBERNETES, ...sets(values)], {
    encoding: 'utf8',
    stdio: 'pipe',
  });

type Backend = { readonly name: string; readonly port: number };
type Service = {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: { readonly ports: readonly { readonly port: number }[] };
};
type Budget = {
  readonly kind: string;
  readonly spec: { readonly maxUnavailable: number; readonly unhealthyPodEvictionPolicy: string };
};
type Container = {
  readonly name: string;
  readonly image: string;
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly startupProbe: Probe;
  readonly readinessProbe: Probe;
};
type Probe = { readonly httpGet: { readonly path: string } };
type Resource = {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly replicas?: number;
    /** Fields of a network policy. */
    readonly podSelector?: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly egress?: readonly { readonly ports: readonly { readonly port: number | string }[] }[];
    readonly template?: {
      readonly metadata: Resource['metadata'];
      readonly spec: {
        readonly terminationGracePeriodSeconds?: number;
        readonly topologySpreadConstraints: readonly { readonly topologyKey: string }[];
        readonly containers: readonly Container[];
        readonly volumes: readonly {
          readonly secret?: { readonly items: readonly { readonly key: string; readonly path: string }[] };
        }[];
      };
    };
  };
};
const isPool = ({ name }: { readonly name: string }) => name === 'DATABASE_POOL_SIZE';
const resources = (yaml: string) => parseAllDocuments(yaml).map((each) => each.toJS() as Resource);
/** The pods of a chart, by the name of their container. */
const podsOf = (values: readonly string[]) =>
  new Map(
    resources(render(values)).flatMap(({ spec, kind }) => {
      const [container] = spec?.template?.spec.containers ?? [];
      return container && spec.template
        ? [[container.name, { kind, spec, container, pod: spec.template.spec }]]
        : [];
    }),
  );

describe.skipIf('skipped' in deploy)('the Helm chart', () => {
  let folder: string;
  let schemas: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'presign-schemas-'));
    schemas = writeSchemas(folder);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const conform = (yaml: string) =>
    spawnSync(tool('kubeconform'), ['-strict', '-summary', '-schema-location', schemas, '-'], {
      input: yaml,
      encoding: 'utf8',
    });

  test.each(VARIANTS)('has valid values and valid resources of Kubernetes with %s', (_name, values) => {
    const lint = [...['lint', '--strict', CHART, '--kube-version', KUBERNETES], ...sets(values)];
    expect(execFileSync(tool('helm'), lint, { encoding: 'utf8' })).toContain('0 chart(s) failed');
    const { status, stdout } = conform(render(values));
    expect(stdout).toMatch(/Invalid: 0, Errors: 0, Skipped: 0/);
    expect(status).toBe(0);
  });

  test('detects a field that Kubernetes does not know, at the top and deeper', () => {
    const yaml = render(EVERYTHING);
    for (const [known, unknown] of [
      ['periodSeconds:', 'periodSecond:'],
      ['maxUnavailable: 1', 'maxUnavailble: 1'],
      ['averageUtilization: 70', 'averageUtilization: much'],
      ['interval: 30s', 'intervall: 30s'],
      ['podSelector:', 'podSelectors:'],
    ] as const) {
      expect(yaml).toContain(known);
      expect(conform(yaml.replace(known, unknown)).status, unknown).toBe(1);
    }
  });

  test('is reached by the HTTPRoute of the guide, which is valid in the Gateway API', () => {
    const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/kubernetes.md'), 'utf8');
    const [route = ''] = codeIn(guide, 'yaml').filter((code) => code.includes('kind: HTTPRoute'));
    expect(conform(route)).toMatchObject({ status: 0 });
    for (const [known, unknown] of [
      ['backendRefs:', 'backends:'],
      ['request: 0s', 'request: never'],
    ] as const) {
      expect(route).toContain(known);
      expect(conform(route.replace(known, unknown)).status, unknown).toBe(1);
    }
    const { rules } = (parse(route) as { spec: { rules: readonly { backendRefs: readonly Backend[] }[] } })
      .spec;
    const services = (parseAllDocuments(render(LEAST)).map((each) => each.toJS()) as readonly Service[])
      .filter((each) => each?.kind === 'Service')
      .map(({ metadata: { name }, spec: { ports } }) => ({ name, port: ports[0]?.port }));
    expect(services).toContainEqual(rules[0]?.backendRefs[0]);
  });

  test.each([
    ['an address that is missing', ['issuerUrl=https://presign.example.com']],
    ['a value that the chart does not have', [...LEAST, 'gateway.replica=3']],
    ['a grace that is shorter than the drain', [...LEAST, 'gateway.graceSeconds=5']],
    ['a variable that no service reads', [...LEAST, 'gateway.env.TRUSTED_PROXYS=10.0.0.1']],
    ['a variable that has a value of its own', [...LEAST, 'env.METRICS_PORT=9465']],
    ['a secret in clear', [...LEAST, 'issuer.env.TOKEN_SIGNING_KEY=k4.secret.x']],
  ])('refuses %s', (_name, values) => {
    expect(() => render(values)).toThrow(
      /gatewayUrl|replica|graceSeconds|TRUSTED_PROXYS|METRICS_PORT|TOKEN_SIGNING_KEY/,
    );
  });

  test('sets only variables that the services read', () => {
    for (const { container } of podsOf(EVERYTHING).values())
      for (const { name } of container.env) {
        const variable = name.replace(/_FILE$/, '');
        expect(Object.keys(VARIABLES)).toContain(name in VARIABLES ? name : variable);
        if (!(name in VARIABLES)) expect([...SECRETS]).toContain(variable);
      }
  });

  test('keeps pods in their Service while a store that all pods share is down, and starts none without it', () => {
    for (const name of ['gateway', 'issuer']) {
      const { container, pod } = podsOf(LEAST).get(name) ?? {};
      expect(container?.startupProbe.httpGet.path).toBe('/readyz');
      expect(container?.readinessProbe.httpGet.path).toBe('/healthz');
      expect(pod?.topologySpreadConstraints.map(({ topologyKey }) => topologyKey)).toEqual([
        'topology.kubernetes.io/zone',
        'kubernetes.io/hostname',
      ]);
    }
  });

  test('allows a node to be drained although a pod on it serves nothing', () => {
    const budgets = (parseAllDocuments(render(LEAST)).map((each) => each.toJS()) as readonly Budget[]).filter(
      (each) => each?.kind === 'PodDisruptionBudget',
    );
    const policies = budgets.map(({ spec }) => [spec.maxUnavailable, spec.unhealthyPodEvictionPolicy]);
    expect(policies).toEqual([
      [1, 'AlwaysAllow'],
      [1, 'AlwaysAllow'],
    ]);
  });

  test('opens fewer connections than Postgres allows by default, with the maximum of gateways', () => {
    const chart = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8'));
    const ofGateway = Number(podsOf(LEAST).get('gateway')?.container.env.find(isPool)?.value);
    const most = chart.gateway.autoscaling.maxReplicas * ofGateway + chart.issuer.replicas * 10;
    expect(ofGateway).toBeGreaterThan(0);
    expect(most).toBeLessThan(97);
  });

  test('gives each part only its own secrets, as files: only the issuer gets the signing key', () => {
    const pods = podsOf(EVERYTHING);
    const itemsOf = (name: string) =>
      pods.get(name)?.pod.volumes.flatMap(({ secret }) => secret?.items.map(({ key }) => key) ?? []);
    const both = ['DATABASE_URL', 'REDIS_URL', 'ENCRYPTION_KEYS', 'TOKEN_PUBLIC_KEYS', 'HTTPS_PROXY'];
    expect(itemsOf('gateway')).toEqual(both);
    const ofArchive = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY'];
    expect(itemsOf('issuer')).toEqual([...both, 'TOKEN_SIGNING_KEY', 'BOOTSTRAP_API_KEY', ...ofArchive]);
    expect(itemsOf('migrate')).toEqual(['MIGRATE_DATABASE_URL']);
    for (const { container, pod } of pods.values()) {
      const paths = pod.volumes.flatMap(({ secret }) => secret?.items.map(({ path }) => path) ?? []);
      const files = container.env.filter(({ name }) => name.endsWith('_FILE')).map(({ value }) => value);
      expect(files).toEqual(paths.map((path) => `/run/secrets/presign/${path}`));
    }
  });

  test('lets the migration reach Postgres in a namespace that denies all traffic', () => {
    const all = resources(render(EVERYTHING)).filter(({ metadata }) => metadata.name === 'presign-migrate');
    const [job, policy] = ['Job', 'NetworkPolicy'].map((kind) => all.find((each) => each.kind === kind));
    const hook = ({ metadata }: Resource) => {
      const { annotations = {} } = metadata;
      const [on, order] = ['helm.sh/hook', 'helm.sh/hook-weight'].map((name) => annotations[name]);
      return { on, order: Number(order ?? 0), ends: annotations['helm.sh/hook-delete-policy'] };
    };
    if (!job || !policy) throw new Error('the job or its policy is missing');
    // Helm makes hooks one after another by weight, and before the resources of the chart.
    expect(hook(policy)).toEqual({ ...hook(job), order: expect.any(Number) });
    expect(hook(policy).order).toBeLessThan(hook(job).order);
    expect(job.spec.template?.metadata.labels).toMatchObject(
      policy.spec.podSelector?.matchLabels ?? { no: '' },
    );
    expect(policy.spec.egress?.flatMap(({ ports }) => ports.map(({ port }) => port))).toEqual(
      expect.arrayContaining([53, 5432]),
    );
  });

  test('has a network policy for each part that it runs, and for no other', () => {
    const policies = (values: readonly string[]) =>
      resources(render(values))
        .filter(({ kind }) => kind === 'NetworkPolicy')
        .map(({ metadata }) => metadata.name)
        .sort();
    expect(policies(LEAST)).toEqual(['presign-gateway', 'presign-issuer', 'presign-migrate']);
    expect(policies([...LEAST, 'migrate.enabled=false'])).toEqual(['presign-gateway', 'presign-issuer']);
  });

  test('kills no pod before its service had time to stop', () => {
    const pods = podsOf(EVERYTHING);
    const setting = (name: string, variable: string) =>
      Number(pods.get(name)?.container.env.find((each) => each.name === variable)?.value);
    for (const [name, pause] of [
      ['gateway', 30],
      ['issuer', 0],
    ] as const) {
      const ends = pause + setting(name, 'SHUTDOWN_GRACE_SECONDS');
      expect(pods.get(name)?.pod.terminationGracePeriodSeconds).toBeGreaterThan(ends);
    }
  });

  test('leaves the number of gateways to the autoscaler, and can set the version of each part', () => {
    const pods = podsOf(EVERYTHING);
    expect(pods.get('gateway')?.spec.replicas).toBeUndefined();
    expect(pods.get('issuer')?.spec.replicas).toBe(3);
    expect(Array.from(pods.values(), ({ container }) => container.image).sort()).toEqual([
      'registry.example.com/team/presign-gateway:1.2.4',
      'registry.example.com/team/presign-issuer:1.2.3',
      'registry.example.com/team/presign-issuer:1.2.3',
    ]);
    const first = podsOf([...EVERYTHING, 'migrate.tag=1.2.4']);
    expect(first.get('migrate')?.container.image).toBe('registry.example.com/team/presign-issuer:1.2.4');
    expect(first.get('issuer')?.container.image).toBe('registry.example.com/team/presign-issuer:1.2.3');
  });
});
