/** Programs that everybody knows, as rows of the table: what they cost alone, and when they do what `create` does. */
export function others({ url, token, foreign, nextId }) {
  const address = `${url}/plants`
  const body = () => `{"id":${nextId()},"name":"Fern"}`
  const headers = ['-H', `Authorization: Bearer ${token}`, '-H', 'Content-Type: application/json']
  return [
    { kind: 'curl', command: 'curl', title: 'curl --version', argv: () => ['curl', '--version'] },
    {
      kind: 'post',
      command: 'curl',
      title: 'curl, POST of a plant',
      argv: () => ['curl', '-fsS', ...headers, '--data', body(), address],
    },
    {
      kind: 'insert',
      command: 'sqlite3',
      title: 'sqlite3, INSERT of a plant', // into a store, so with its schema and its write-ahead log
      argv: () => [
        'sqlite3',
        foreign,
        `PRAGMA synchronous=FULL; PRAGMA busy_timeout=0; INSERT INTO plants (id, name) VALUES (${nextId()}, 'Fern')`,
      ],
    },
    {
      kind: 'http',
      command: 'http',
      title: 'HTTPie, POST of a plant',
      argv: () => [
        'http',
        '--ignore-stdin',
        '--check-status',
        'POST',
        address,
        `id:=${nextId()}`,
        'name=Fern',
        `Authorization:Bearer ${token}`,
      ],
    },
    { kind: 'gh', command: 'gh', title: 'gh --version', argv: () => ['gh', '--version'] },
  ]
}
