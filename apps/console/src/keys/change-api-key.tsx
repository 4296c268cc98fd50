import type { ApiKey } from '@presign/client';
import { issuerTime, presign } from '../api/api.ts';
import { fieldTime } from '../data/format/format.ts';
import { instantOf } from '../data/format/range.ts';
import { SCOPES } from '../data/scopes.ts';
import { Action, Secret } from '../parts/forms/action.tsx';
import { Choice, Field } from '../parts/forms/form.tsx';
import { useZone } from '../parts/page/facts.tsx';
import { PolicyEditor, policyIn } from './policy-editor.tsx';
import { ScopeFields } from './scope-fields.tsx';

type Of = { readonly apiKey: ApiKey };

export function ChangeApiKey({ apiKey }: Of) {
  const { id, name, scopes, expires_at: end, requests_per_minute: rate, policy, revision } = apiKey;
  const zone = useZone();
  const shownEnd = fieldTime(end === null ? undefined : String(end), zone);
  return (
    <Action
      label="Change"
      of={name}
      title={`Change the API key ${name}`}
      submit="Save"
      isWide
      run={async ({ name: next = '', ends, rate: most, ...fields }) =>
        presign.changeApiKey(
          {
            id,
            name: next,
            scopes: SCOPES.filter((scope) => fields[scope] !== undefined),
            // The field shows minutes, so an unchanged expiry keeps its seconds.
            ...(ends !== shownEnd && {
              expires_at: ends === undefined ? null : instantOf(ends, zone) / 1000,
            }),
            requests_per_minute: most === undefined ? null : Number(most),
            policy: policyIn(fields),
          },
          { ifRevision: revision },
        )
      }
    >
      <Field label="Name" name="name" value={name} required />
      <ScopeFields of={scopes} chosen={scopes} />
      <Field
        label={`Ends at (${zone})`}
        name="ends"
        param="expires_at"
        type="datetime-local"
        value={shownEnd}
        hint="Empty: never."
      />
      <Field
        label="Requests a minute"
        name="rate"
        param="requests_per_minute"
        type="number"
        value={rate === null ? '' : String(rate)}
        hint="Empty: as many as the operator allows."
      />
      <PolicyEditor policy={policy} />
    </Action>
  );
}

export const RevokeApiKey = ({ apiKey: { id, name } }: Of) => (
  <Action
    label="Revoke"
    of={name}
    title={`Revoke the API key ${name}?`}
    submit="Revoke"
    isDanger
    run={() => presign.revokeApiKey({ id })}
  >
    <p>Requests with it get 401 at once. URLs that it issued go on.</p>
  </Action>
);

export const RevokeIssued = ({ apiKey: { id, name } }: Of) => (
  <Action
    label="Revoke its URLs"
    of={name}
    title={`Revoke all URLs that ${name} issued?`}
    submit="Revoke"
    isDanger
    run={() => presign.revokeSessions({ api_key: id })}
  >
    <p>
      Every gateway refuses their next call. This cannot be undone. If the key has leaked, revoke the key
      first, so that it issues no more.
    </p>
  </Action>
);

/** When the old key of a rotation ends, in seconds. */
const OLD_ENDS = [
  ['', 'when I revoke it'],
  ['3600', 'in an hour'],
  ['86400', 'in a day'],
  ['604800', 'in 7 days'],
] as const;

/** Creates a copy of a key, and lets the old key expire. */
async function rotate(
  { id, name, scopes, expires_at: end, created_at: start, ...key }: ApiKey,
  seconds: number,
) {
  const made = await presign.createApiKey({
    name,
    scopes,
    ...(end !== null && { expires_in: end - Math.floor(start) }),
    ...(key.requests_per_minute !== null && { requests_per_minute: key.requests_per_minute }),
    ...(key.policy !== null && { policy: key.policy }),
  });
  if (seconds === 0) return { key: made.key, error: undefined };
  const at = Math.floor(issuerTime()) + seconds;
  // The new key is always shown, because no later answer contains it.
  const error = await presign
    .changeApiKey({ id, expires_at: end === null ? at : Math.min(end, at) })
    .then(() => undefined)
    .catch((cause: Error) => cause);
  return { key: made.key, error };
}

export const RotateApiKey = ({ apiKey }: Of) => (
  <Action
    label="Rotate"
    of={apiKey.name}
    title={`Make a new key for ${apiKey.name}`}
    submit="Rotate"
    run={({ old = '0' }) => rotate(apiKey, Number(old))}
    show={({ key, error }) => (
      <>
        <Secret label="The new API key" value={key} />
        {error && <p class="failed">The old key stays as it was: {error.message}</p>}
      </>
    )}
  >
    <p>
      The new key has the same name, scopes and policy. Give it to the backend, wait until the old key is no
      longer used, and revoke the old one. URLs that it issued go on.
    </p>
    <Choice label="The old key ends" name="old" value="" options={OLD_ENDS} />
  </Action>
);
