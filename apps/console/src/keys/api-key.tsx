import { useApiKey } from '../api/developer-queries.ts';
import { SCOPE_WORDS } from '../data/scopes.ts';
import { Answer, Page } from '../parts/page/answer.tsx';
import { Facts, Id, Json, Status, When } from '../parts/page/facts.tsx';
import { href } from '../parts/page/place.ts';
import { issues, rateOf, statusOf } from './api-keys.tsx';
import { ChangeApiKey, RevokeApiKey, RevokeIssued, RotateApiKey } from './change-api-key.tsx';
import { useKeyNames } from './policy-editor.tsx';
import { policyInWords } from './policy-words.ts';

/** One API key: what it may do and issue, and when it was last used. */
export function ApiKeyPage({ id }: { id: string }) {
  const nameOf = useKeyNames();
  const found = useApiKey(id);
  return (
    <Page title={found.data?.name ?? 'API key'}>
      <Answer of={found}>
        {(key) => (
          <>
            <Facts
              of={[
                ['Status', <Status key="status" of={statusOf(key)} />],
                [
                  'Last used',
                  key.last_used_at === null ? 'never' : <When key="used" at={key.last_used_at} />,
                ],
                ['Ends', key.expires_at === null ? 'never' : <When key="ends" at={key.expires_at} />],
                ['Created', <When key="created" at={key.created_at} />],
                ['Requests a minute', rateOf(key)],
                ['Key', <code key="hint">{key.hint}</code>],
                ['Id', <Id key="id" of={key.id} name="API key id" />],
              ]}
            />
            <p class="buttons">
              {key.revoked_at === null && (
                <>
                  <ChangeApiKey apiKey={key} />
                  <RotateApiKey apiKey={key} />
                  <RevokeApiKey apiKey={key} />
                </>
              )}
              <RevokeIssued apiKey={key} />
            </p>
            <h2>It may</h2>
            <ul>
              {key.scopes.map((scope) => (
                <li key={scope}>
                  <b>{scope}</b>: {SCOPE_WORDS[scope]}
                </li>
              ))}
            </ul>
            {issues(key) && <p>{policyInWords(key.policy, nameOf)}</p>}
            {key.policy && <Json label="Policy as JSON" of={key.policy} />}
            <p class="links">
              <a href={href('urls', { api_key: id })}>URLs that it issued</a>
              <a href={href('requests', { api_key: id })}>Their requests</a>
              <a href={href('audit', { actor: id })}>Changes that it made</a>
              <a href={href('audit', { target_kind: 'api_key', target_id: id })}>Changes of it</a>
            </p>
          </>
        )}
      </Answer>
    </Page>
  );
}
