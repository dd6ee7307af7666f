import type { Command } from 'commander'
import { PlantsError } from '../errors.js'
import { type GlobalFlags, parseBasePath, parseChoice, parseCount, parsePort, parseSize, parseText, parseTimer } from '../flags.js'
import type { Io, Output } from '../io.js'
import { toJson } from '../json.js'
import type { ServiceOptions } from '../service/service.js'
import type { Settings } from '../settings/preferences.js'
import { resolveSettings } from '../settings.js'
import { openStoreWithTokens } from '../stores/open.js'

interface ServeFlags extends GlobalFlags {
  host?: string
  port?: string
  socket?: string
  basePath: string
  tlsCert?: string
  tlsKey?: string
  tokenFile?: string
  adminPort?: string
  bodyLimit: string
  headerLimit: string
  headerTimeout: string
  requestTimeout: string
  keepAlive: string
  connectionLimit: string
  queueLimit: string
  batchLimit: string
  drainTimeout: string
  logLevel: string
}

export function defineServe(program: Command, io: Io): void {
  program
    .command('serve')
    .summary('put a store behind HTTP')
    .description(
      'Put a store behind the HTTP operation of the specification. Its address is the first line on stdout, the log is on stderr.',
    )
    .option('--host <host>', 'address to listen at: 127.0.0.1 (default); 0.0.0.0 for all of this machine')
    .option('--port <port>', 'port to listen at: 4010 (default); 0 for any that is free')
    .option('--socket <path>', 'listen at a Unix socket instead')
    .option('--base-path <path>', 'what stands before /plants, such as /v1')
    .option('--tls-cert <path>', 'PEM certificate, with its chain')
    .option('--tls-key <path>', 'PEM key of the certificate')
    .option('--token-file <path>', 'accept the tokens in this file, one a line, and no others; also PLANTS_SERVE_TOKEN')
    .option('--admin-port <port>', 'answer /live, /ready and /metrics there, without a token')
    .option('--body-limit <size>', 'size of a body', '1MiB')
    .option('--header-limit <size>', 'size of all headers of a request', '16KiB')
    .option('--header-timeout <duration>', 'until the headers have come', '10s')
    .option('--request-timeout <duration>', 'until the body has come', '30s')
    .option('--keep-alive <duration>', 'how long an idle connection stays open', '65s')
    .option('--connection-limit <count>', 'open connections', '10000')
    .option('--queue-limit <count>', 'creates that wait; more are sent away with 503', '10000')
    .option('--batch-limit <count>', 'creates that share a commit', '1000')
    .option('--drain-timeout <duration>', 'how long a stop may take', '10s')
    .option('--log-level <level>', 'trace, debug, info, warn, error, fatal or silent', 'info')
    .addHelpText('after', examples)
    .action((_, command: Command) => serve(command.optsWithGlobals<ServeFlags>(), io))
}

const examples = `
Examples:
  plants tokens create --note laptop
  plants serve
  plants serve --store ./garden.db --port 0 --base-path /v1
`

async function serve(flags: ServeFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  const { startService } = await import('../service/service.js')
  const drainTimeout = parseTimer('--drain-timeout', flags.drainTimeout)
  const service = await startService(await planOf(flags, settings, io))
  try {
    // As the lines of a log are: whoever reads it may have left, or be slow, and nothing waits for them.
    void io.stdout.log(settings.errors === 'json' ? `${toJson({ address: service.address })}\n` : `${service.address}\n`)
    await untilTold(io.signal)
  } finally {
    await service.drain(drainTimeout)
    await flush(io.stderr)
  }
}

/** Waits for the end of the log; a reader who has stalled is waited for a second, and no more. */
async function flush(log: Output): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, 1000)
  })
  await Promise.race([log.log(''), patience])
  clearTimeout(timer)
}

async function planOf(flags: ServeFlags, settings: Settings, io: Io): Promise<ServiceOptions> {
  const { callersOf } = await import('../service/callers.js')
  // Told to stop, the service still answers what it has received, so its store goes on.
  const clock = { signal: new AbortController().signal, now: io.now, random: io.random }
  const opening = { ...settings.opening, clock, batchLimit: parseCount('--batch-limit', flags.batchLimit) }
  return {
    openStore: (onCommit) => openStoreWithTokens(settings.store, { ...opening, onCommit }),
    findCallers: (tokens, complain) =>
      callersOf(tokens, { tokenFile: flags.tokenFile, mayShow: flags.input !== false && io.stderr.isTerminal, settings, io, complain }),
    place: placeOf(flags, io),
    basePath: parseBasePath('--base-path', flags.basePath),
    tls: await tlsOf(flags, io),
    admin:
      flags.adminPort === undefined
        ? undefined
        : { host: flags.host ?? loopback, port: parsePort('--admin-port', flags.adminPort), flag: '--admin-port' },
    limits: limitsOf(flags),
    log: { output: io.stderr, level: parseChoice('--log-level', flags.logLevel, logLevels) },
    now: () => performance.now(), // at half the price of the one that starts fast
  }
}

const loopback = '127.0.0.1'

function placeOf({ socket, host, port }: ServeFlags, io: Io): ServiceOptions['place'] {
  if (socket === undefined) return { host: parseText('--host', host ?? loopback), port: parsePort('--port', port ?? '4010') }
  if (port !== undefined) throw new PlantsError('malformed', '--socket and --port cannot go together', { hint: 'Leave one of them out' })
  return { path: io.resolvePath(parseText('--socket', socket)) }
}

function limitsOf(flags: ServeFlags): ServiceOptions['limits'] {
  return {
    bodyLimit: parseSize('--body-limit', flags.bodyLimit),
    headerLimit: parseSize('--header-limit', flags.headerLimit),
    headerTimeout: parseTimer('--header-timeout', flags.headerTimeout),
    requestTimeout: parseTimer('--request-timeout', flags.requestTimeout),
    keepAlive: parseTimer('--keep-alive', flags.keepAlive),
    connectionLimit: parseCount('--connection-limit', flags.connectionLimit),
    queueLimit: parseCount('--queue-limit', flags.queueLimit),
  }
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

async function tlsOf({ tlsCert, tlsKey }: ServeFlags, io: Io): Promise<ServiceOptions['tls']> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new PlantsError('malformed', 'TLS needs a certificate and its key', { hint: 'Give both --tls-cert PATH and --tls-key PATH' })
  }
  const { readTls } = await import('../service/tls.js')
  return readTls(io.resolvePath(parseText('--tls-cert', tlsCert)), io.resolvePath(parseText('--tls-key', tlsKey)))
}

function untilTold(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
