import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

export const Waiting = () => <p role="status">Loading…</p>;

export const Failed = ({ error }: { error: Error }) => (
  <p role="alert" class="failed">
    {error.message}
  </p>
);

export type Asked<T> = { readonly data: T | undefined; readonly error: Error | null };

/** Shows the answer of a query, or why there is none. */
export function Answer<T>({ of, children }: { of: Asked<T>; children: (data: T) => ComponentChildren }) {
  if (of.data !== undefined)
    return (
      <>
        {of.error && <Failed error={of.error} />}
        {children(of.data)}
      </>
    );
  return of.error ? <Failed error={of.error} /> : <Waiting />;
}

/**
 * A screen. Its heading gets the focus at once, so that a screen reader announces the page. A field that already has the focus keeps it.
 */
export function Page({ title, children }: { title: string; children: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    document.title = `${title} · Presign`;
    heading.current?.focus();
  }, [title]);
  return (
    <>
      <h1 ref={heading} tabIndex={-1}>
        {title}
      </h1>
      {children}
    </>
  );
}
