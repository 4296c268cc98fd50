import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/preact-query';
import { render } from 'preact';
import { App } from './app.tsx';
import { isSignedOut } from './data/api.ts';
import './style.css';
import './parts/parts.css';

const client = new QueryClient({
  // The client library repeats what may be repeated.
  defaultOptions: { queries: { retry: false, staleTime: 10_000 } },
  queryCache: new QueryCache({
    onError: (error) => {
      if (isSignedOut(error)) client.setQueryData(['limits'], null);
    },
  }),
});

const place = document.getElementById('app');
if (place)
  render(
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>,
    place,
  );
