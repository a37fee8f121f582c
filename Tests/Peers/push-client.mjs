// An HTTP/2 client on Node's own stack. Reads one JSON object from standard input:
//   {"url": ..., "ca": FILE, "together": bool, "timeout": ms, "requests": [{"headers": {...}, "body": "..."}]}
// and writes one to standard output: what became of each request, and what the connection said.
import { readFileSync } from 'node:fs';
import http2 from 'node:http2';

const input = JSON.parse(readFileSync(0, 'utf8'));
const session = http2.connect(input.url, { ca: readFileSync(input.ca) });
const output = { results: [], settings: [], goaway: [], error: null };
session.on('remoteSettings', (settings) => output.settings.push(settings.maxConcurrentStreams));
session.on('goaway', (code, last, data) => output.goaway.push({ code, last, debug: data ? data.toString() : '' }));
session.on('error', (error) => { output.error = error.code ?? String(error); });

let ended = 0;

function push(request) {
  return new Promise((resolve) => {
    const result = { status: null, headers: {}, body: '', informational: [], code: null, error: null, ms: 0, order: 0 };
    const started = Date.now();
    let stream;
    try {
      stream = session.request({ ':method': 'POST', ...request.headers });
    } catch (error) {
      return resolve({ ...result, error: error.code });
    }
    const timer = setTimeout(() => { result.error = 'TIMEOUT'; stream.close(8); }, input.timeout ?? 10000);
    stream.on('headers', (headers) => result.informational.push(headers[':status']));
    stream.on('response', (headers) => { result.status = headers[':status']; result.headers = { ...headers }; });
    stream.on('data', (data) => { result.body += data; });
    stream.on('error', (error) => { result.error ??= error.code; });
    stream.on('close', () => {
      clearTimeout(timer);
      result.code = stream.rstCode;
      result.ms = Date.now() - started;
      result.order = ended++;
      resolve(result);
    });
    stream.end(request.body);
  });
}

if (input.together) {
  output.results = await Promise.all(input.requests.map(push));
} else {
  for (const request of input.requests) output.results.push(await push(request));
}
// What follows the last answer, such as a GOAWAY, may still be on its way: a PING comes back behind it.
if (!session.destroyed) await new Promise((resolve) => { session.on('close', resolve); if (!session.ping(resolve)) resolve(); });
session.destroy();
process.stdout.write(JSON.stringify(output));
