import { defaultPort, logLevels, loopback } from '../../server/defaults.js'
import type { GlobalFlags } from '../flags.js'
import { type CommandSpec, command, type Flag, type FlagValues } from '../spec.js'

const serveFlags = [
  { term: '--host <host>', meaning: 'address to listen at; 0.0.0.0 for all of this machine', preset: loopback },
  { term: '--port <port>', meaning: `port to listen at: ${defaultPort} (default); 0 for any that is free` },
  { term: '--socket <path>', meaning: 'listen at a Unix socket instead', values: 'file' },
  { term: '--base-path <path>', meaning: 'what stands before /plants, such as /v1' },
  { term: '--tls-cert <path>', meaning: 'PEM certificate, with its chain', values: 'file' },
  { term: '--tls-key <path>', meaning: 'PEM key of the certificate', values: 'file' },
  {
    term: '--token-file <path>',
    meaning: 'accept the tokens in this file, one a line, and no others; also PLANTS_SERVE_TOKEN',
    values: 'file',
  },
  { term: '--admin-port <port>', meaning: 'answer /live, /ready and /metrics there, without a token' },
  { term: '--admin-host <host>', meaning: `address for --admin-port: ${loopback} (default)` },
  { term: '--body-limit <size>', meaning: 'size of a body', preset: '1MiB' },
  { term: '--header-limit <size>', meaning: 'size of all headers of a request', preset: '16KiB' },
  { term: '--header-timeout <duration>', meaning: 'until the headers have come', preset: '10s' },
  { term: '--request-timeout <duration>', meaning: 'until the body has come, and until more of an answer is read', preset: '30s' },
  { term: '--keep-alive <duration>', meaning: 'how long an idle connection stays open', preset: '65s' },
  { term: '--connection-limit <count>', meaning: 'open connections', preset: '10000' },
  { term: '--queue-limit <count>', meaning: 'creates that wait; more are sent away with 503', preset: '10000' },
  { term: '--batch-limit <count>', meaning: 'creates that share a commit', preset: '1000' },
  { term: '--drain-timeout <duration>', meaning: 'how long a stop may take', preset: '10s' },
  {
    term: '--log-level <level>',
    meaning: 'trace, debug, info, warn, error, fatal or silent',
    preset: 'info',
    values: logLevels,
  },
] as const satisfies readonly Flag[]

export type ServeFlags = GlobalFlags & FlagValues<typeof serveFlags>

export const serve = command({
  name: 'serve',
  summary: 'put a store behind HTTP',
  description: 'Put a store behind the HTTP operation of the specification. Its address is the first line on stdout, the log is on stderr.',
  flags: serveFlags,
  examples: ['plants tokens create --note laptop', 'plants serve', 'plants serve --store ./garden.db --port 0 --base-path /v1'],
  run: async ({ flags }, io) => (await import('./serve.js')).serve(flags(), io),
})

const tokenFlags = [
  { term: '--note <text>', meaning: 'what it is for' },
  { term: '--expires <duration>', meaning: 'how long it is valid: 90d, 12h; without, until it is revoked' },
] as const satisfies readonly Flag[]

export type TokenFlags = GlobalFlags & FlagValues<typeof tokenFlags>

export const tokens: CommandSpec = {
  name: 'tokens',
  summary: 'manage who may use plants serve',
  description: 'Manage the bearer tokens that plants serve accepts. The store keeps only their SHA-256.',
  examples: ['plants tokens create --note laptop --expires 90d', 'plants tokens list', 'plants tokens revoke 1'],
  commands: [
    command({
      name: 'create',
      description: 'Make a token and print it. It is not shown again.',
      flags: tokenFlags,
      run: async ({ flags }, io) => (await import('./tokens.js')).create(flags(), io),
    }),
    {
      name: 'list',
      description: 'List the tokens: what they are for and until when, but not the tokens themselves.',
      run: async ({ flags }, io) => (await import('./tokens.js')).list(flags(), io),
    },
    {
      name: 'revoke',
      description: 'Make a token invalid, at once; a running plants serve follows within a second.',
      arguments: [{ term: '<id>', meaning: 'the number that plants tokens list shows' }],
      run: async ({ args: [id = ''], flags }, io) => (await import('./tokens.js')).revoke(id, flags(), io),
    },
  ],
}

const openApiFlags = [{ term: '--base-path <path>', meaning: 'what stands before /plants, such as /v1' }] as const satisfies readonly Flag[]

export type OpenApiFlags = GlobalFlags & FlagValues<typeof openApiFlags>

export const openapi = command({
  name: 'openapi',
  summary: 'print the description of the HTTP interface',
  description: 'Print what plants serve answers at /openapi.json: the description of its interface, OpenAPI 3.1.',
  flags: openApiFlags,
  examples: ['plants openapi > openapi.json'],
  run: async ({ flags }, io) => (await import('./openapi.js')).printOpenApi(flags(), io),
})
