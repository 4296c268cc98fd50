import type { McpPresignAnswer } from '@presign/client';
import { useState } from 'preact/hooks';
import { Failed } from '../parts/page/answer.tsx';
import { Table } from '../parts/tables/table.tsx';
import { Explained } from './explained.tsx';
import { listTools, type Tools } from './list-tools.ts';

/** Lists the tools of each server of a bundle, as a client does. */
export function McpTools({ servers }: Pick<McpPresignAnswer, 'servers'>) {
  return (
    <>
      <h2>Try it</h2>
      {Object.entries(servers).map(([name, server]) =>
        server.transport === 'http' ? (
          <OneServer key={name} name={name} url={server.url} />
        ) : (
          <p key={name} class="soft">
            {name} has the older transport, which this page does not speak.
          </p>
        ),
      )}
    </>
  );
}

function OneServer({ name, url }: { name: string; url: string }) {
  const [tools, setTools] = useState<Tools>();
  const [error, setError] = useState<Error>();
  const [isRunning, setRunning] = useState(false);
  const list = async () => {
    setRunning(true);
    setError(undefined);
    setTools(undefined);
    await listTools(url).then(setTools, setError);
    setRunning(false);
  };
  return (
    <>
      <p>
        <button type="button" disabled={isRunning} onClick={() => void list()}>
          List the tools of {name}
        </button>
      </p>
      {error && <Failed error={error} />}
      {tools && 'refused' in tools && <Explained head={tools.refused} text={tools.text} />}
      {tools && 'tools' in tools && (
        <Table
          caption={`Tools of ${name}`}
          rows={tools.tools}
          keyOf={(tool) => tool.name}
          empty="The server has no tool that the URL allows."
          columns={[
            { head: 'Tool', cell: (tool) => tool.name },
            { head: 'Description', cell: ({ description }) => description ?? '–' },
          ]}
        />
      )}
    </>
  );
}
