import { useContext } from 'preact/hooks';
import { Page } from '../parts/page/answer.tsx';
import { NeedsScope } from '../parts/page/needs-scope.tsx';
import { Rights } from '../parts/page/rights.ts';
import { ApiKeyPage } from './api-key.tsx';
import { ApiKeys } from './api-keys.tsx';
import { VirtualKeyPage } from './virtual-key.tsx';
import { VirtualKeys } from './virtual-keys.tsx';

/** The keys that backends use to call the issuer, and the stored provider keys. */
export function Keys() {
  const can = useContext(Rights);
  return (
    <Page title="Keys">
      <h2>API keys</h2>
      {can('admin') ? <ApiKeys /> : <NeedsScope scope="admin" to="see and change API keys" />}
      <h2>Virtual keys</h2>
      <VirtualKeys />
    </Page>
  );
}

/** The page of an API key or of a virtual key, whose ids have a prefix. */
export function KeyPage({ id }: { id: string }) {
  const can = useContext(Rights);
  if (id.startsWith('vk_')) return <VirtualKeyPage id={id} />;
  if (can('admin')) return <ApiKeyPage id={id} />;
  return (
    <Page title="API key">
      <NeedsScope scope="admin" to="see and change API keys" />
    </Page>
  );
}
