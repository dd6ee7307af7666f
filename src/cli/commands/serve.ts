import { statSync } from 'node:fs'
import { toJson } from '../../plant/json.js'
import { PlantsError, shellWord } from '../../platform/errors.js'
import { visible } from '../../platform/escape.js'
import type { Io, Output } from '../../platform/io.js'
import { parseBasePath, parseChoice, parseCount, parsePort, parseSize, parseText, parseTimer } from '../../platform/values.js'
import { defaultPort, logLevels, loopback } from '../../server/defaults.js'
import type { ServiceOptions } from '../../server/service.js'
import { openStoreWithTokens } from '../../stores/registry.js'
import { resolveSettings } from '../context.js'
import type { Settings } from '../settings.js'
import type { ServeFlags } from './service-spec.js'

export async function serve(flags: ServeFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  const { startService } = await import('../../server/service.js')
  const drainTimeout = parseTimer('--drain-timeout', flags.drainTimeout)
  const service = await startService(await planOf(flags, settings, io))
  try {
    const told = untilTold(io.signal)
    const text = settings.errors === 'json' ? toJson({ address: service.address }) : service.address
    // As the lines of a log are: whoever reads it may have left, or be slow, and nothing waits for them.
    const announced = io.stdout.log(`${io.stdout.isTerminal ? visible(text) : text}\n`)
    await Promise.race([told, announced.then(() => told)])
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
  const { callersOf } = await import('../serve-tokens.js')
  // Told to stop, the service still answers what it has received, so its store goes on.
  const clock = { signal: new AbortController().signal, now: io.now, random: io.random }
  const opening = { ...settings.opening, clock, batchLimit: parseCount('--batch-limit', flags.batchLimit) }
  return {
    openStore: (watch) => openStoreWithTokens(settings.store, { ...opening, ...watch }),
    findCallers: (tokens, complain) => {
      for (const flag of ['tlsKey', 'tokenFile'] as const) warnOfRights(flag, flags[flag], io, complain)
      return callersOf(tokens, {
        tokenFile: flags.tokenFile,
        mayShow: flags.input !== false && io.stderr.isTerminal,
        settings,
        io,
        complain,
      })
    },
    place: placeOf(flags, io),
    basePath: parseBasePath('--base-path', flags.basePath),
    tls: await tlsOf(flags, io),
    admin: adminOf(flags),
    limits: limitsOf(flags),
    log: { output: io.stderr, level: parseChoice('--log-level', flags.logLevel, logLevels) },
    now: () => performance.now(), // at half the price of the one that starts fast
  }
}

function placeOf({ socket, host, port }: ServeFlags, io: Io): ServiceOptions['place'] {
  if (socket === undefined) return { host: parseText('--host', host), port: parsePort('--port', port ?? defaultPort) }
  if (port !== undefined) throw new PlantsError('malformed', '--socket and --port cannot go together', { hint: 'Leave one of them out' })
  return { path: io.resolvePath(parseText('--socket', socket)) }
}

function adminOf({ adminHost, adminPort }: ServeFlags): ServiceOptions['admin'] {
  if (adminPort !== undefined)
    return { host: parseText('--admin-host', adminHost ?? loopback), port: parsePort('--admin-port', adminPort), isAdmin: true }
  if (adminHost !== undefined) throw new PlantsError('malformed', '--admin-host needs --admin-port', { hint: 'Add --admin-port 9090' })
  return undefined
}

/** Warns of a file of secrets that is not for this user alone. */
function warnOfRights(flag: 'tlsKey' | 'tokenFile', given: string | undefined, io: Io, complain: (message: string) => void): void {
  const path = given === undefined ? undefined : io.resolvePath(given)
  const stats = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false })
  if (path === undefined || !stats || process.platform === 'win32') return
  const name = flag === 'tlsKey' ? '--tls-key' : '--token-file'
  if (!io.trusts(stats.uid))
    complain(`The file of ${name}, ${path}, belongs to another user (uid ${stats.uid}), who can read and change it`)
  else if ((stats.mode & 0o077) !== 0)
    complain(`Others can read or write ${path}, the file of ${name}. Change that with: chmod 600 ${shellWord(path)}`)
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
  const { readTls } = await import('../serve-tls.js')
  return readTls(io.resolvePath(parseText('--tls-cert', tlsCert)), io.resolvePath(parseText('--tls-key', tlsKey)))
}

function untilTold(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
