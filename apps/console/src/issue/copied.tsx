import { useState } from 'preact/hooks';

/** A text to copy. */
export function Copied({ label, text }: { label: string; text: string }) {
  const [copied, setCopied] = useState('');
  const copy = () => navigator.clipboard.writeText(text).then(() => setCopied(text));
  return (
    <>
      <section aria-label={label}>
        <pre>{text}</pre>
      </section>
      <p>
        <button type="button" onClick={copy}>
          {copied === text ? 'Copied' : 'Copy'}
          <span class="unseen"> {label}</span>
        </button>
      </p>
    </>
  );
}
