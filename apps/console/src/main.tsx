import { QueryClient, QueryClientProvider } from '@tanstack/preact-query';
import { render } from 'preact';
import { App } from './app.tsx';
import { SIGNED_OUT } from './data/api.ts';
import './style.css';
import './parts/parts.css';

const client = new QueryClient({
  // The client library repeats what may be repeated.
  defaultOptions: { queries: { retry: false, staleTime: 10_000 } },
});
addEventListener(SIGNED_OUT, () => client.setQueryData(['limits'], null));

const place = document.getElementById('app');
if (place)
  render(
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>,
    place,
  );
