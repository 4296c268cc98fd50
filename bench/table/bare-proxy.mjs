// The least that a proxy in Node does: Node's HTTP server and undici, no checks, no limits, no log. Arguments: the port to
// listen on, and the origin to send to.
import { createServer } from 'node:http';
import { Pool } from 'undici';

const [port, origin] = process.argv.slice(2);
const pool = new Pool(origin, { connections: 256, pipelining: 1 });

createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  const { connection, 'transfer-encoding': coding, ...headers } = request.headers;
  pool
    .stream({ path: request.url, method: request.method, headers, body: request }, (answer) => {
      const { connection, 'keep-alive': keepAlive, 'transfer-encoding': coding, ...passed } = answer.headers;
      return response.writeHead(answer.statusCode, passed);
    })
    .catch(() => response.destroy());
}).listen(Number(port), '127.0.0.1');
