import { PlantsError } from '../errors.js'
import { type GlobalFlags, parseBasePath, parseChoice, parseCount, parsePort, parseSize, parseText, parseTimer } from '../flags.js'
import type { Io, Output } from '../io.js'
import { toJson } from '../json.js'
import { logLevels } from '../service/log-levels.js'
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

export async function serve(flags: ServeFlags, io: Io): Promise<void> {
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
    openStore: (watch) => openStoreWithTokens(settings.store, { ...opening, ...watch }),
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
