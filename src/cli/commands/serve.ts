import { once } from 'node:events'
import { statSync } from 'node:fs'
import { toJson } from '../../plant/json.js'
import { within } from '../../platform/clock.js'
import { PlantsError, shellWord } from '../../platform/errors.js'
import { escapeControlChars } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { readTextFile } from '../../platform/text-files.js'
import { parseBasePath, parseCount, parsePort, parseSize, parseText, parseTimer } from '../../platform/values.js'
import type { ServiceOptions } from '../../server/service.js'
import { openStoreWithTokens } from '../../stores/registry.js'
import type { Settings } from '../context.js'
import { isInteractive, resolveSettings } from '../context.js'
import { allowOption, defineCommand, type GlobalFlags, type OptionDefinition, type OptionValues, pathOption } from '../define-command.js'

/** The port without --port, which is no default of the option: it conflicts with --socket. */
const defaultPort = 4010

/** Where the service and its admin port listen by default. */
const loopback = '127.0.0.1'

const options = [
  { flags: '--host <host>', description: 'address to listen at; 0.0.0.0 for all of this machine', default: loopback, parse: parseText },
  {
    flags: '--port <port>',
    description: `port to listen at: ${defaultPort} (default); 0 for any that is free`,
    parse: parsePort,
    conflicts: ['socket'],
  },
  pathOption('--socket <path>', 'listen at a Unix socket instead'),
  { flags: '--base-path <path>', description: 'what stands before /plants, such as /v1', parse: parseBasePath },
  pathOption('--tls-cert <path>', 'PEM certificate, with its chain'),
  pathOption('--tls-key <path>', 'PEM key of the certificate'),
  pathOption('--token-file <path>', 'accept the tokens in this file, one a line, and no others; also PLANTS_SERVE_TOKEN'),
  allowOption('what PLANTS_SERVE_TOKEN and the tokens of --token-file allow', 'create'),
  { flags: '--only-create', description: 'offer the operation of the specification alone: creating plants' },
  { flags: '--admin-port <port>', description: 'answer /live, /ready and /metrics there, without a token', parse: parsePort },
  { flags: '--admin-host <host>', description: `address for --admin-port: ${loopback} (default)`, parse: parseText },
  { flags: '--body-limit <size>', description: 'size of a body', default: '1MiB', parse: parseSize },
  { flags: '--header-limit <size>', description: 'size of all headers of a request', default: '16KiB', parse: parseSize },
  { flags: '--header-timeout <duration>', description: 'until the headers have come', default: '10s', parse: parseTimer },
  {
    flags: '--request-timeout <duration>',
    description: 'until the body has come, and until more of an answer is read',
    default: '30s',
    parse: parseTimer,
  },
  { flags: '--keep-alive <duration>', description: 'how long an idle connection stays open', default: '65s', parse: parseTimer },
  { flags: '--connection-limit <count>', description: 'open connections', default: '10000', parse: parseCount },
  { flags: '--queue-limit <count>', description: 'creates that wait; more are sent away with 503', default: '10000', parse: parseCount },
  { flags: '--batch-limit <count>', description: 'creates that share a commit', default: '1000', parse: parseCount },
  { flags: '--drain-timeout <duration>', description: 'how long a drain may take', default: '10s', parse: parseTimer },
  {
    flags: '--log-level <level>',
    description: 'trace, debug, info, warn, error, fatal or silent',
    choices: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    default: 'info',
  },
] as const satisfies readonly OptionDefinition[]

type ServeFlags = GlobalFlags & OptionValues<typeof options>

export const serve = defineCommand({
  name: 'serve',
  description: 'Serve a store with the HTTP operation of the specification. Its address is the first line on stdout, the log is on stderr.',
  options,
  examples: ['plants tokens create --note laptop', 'plants serve', 'plants serve --store ./garden.db --port 0 --base-path /v1'],
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { startService } = await import('../../server/service.js')
    const service = await startService(await optionsFor(flags, settings, io))
    try {
      const stopped: Promise<unknown> = io.signal.aborted ? Promise.resolve() : once(io.signal, 'abort')
      const text = settings.errors === 'json' ? toJson({ address: service.address }) : service.address
      // As the lines of a log are: whoever reads it may have left, or be slow, and nothing waits for them.
      const announced = io.stdout.log(`${io.stdout.isTerminal ? escapeControlChars(text) : text}\n`)
      await Promise.race([stopped, announced.then(() => stopped)])
    } finally {
      await service.drain(flags.drainTimeout)
      // The end of the log is waited for a second, in case its reader has stalled.
      await within(1000, [], (signal) => Promise.race([io.stderr.log(''), once(signal, 'abort')]))
    }
  },
})

async function optionsFor(flags: ServeFlags, settings: Settings, io: Io): Promise<ServiceOptions> {
  const { tokenSourceFor } = await import('../serve-tokens.js')
  const { tokenFile, socket, host, port = defaultPort, adminHost = loopback, adminPort } = flags
  const { bodyLimit, headerLimit, headerTimeout, requestTimeout, keepAlive, connectionLimit, queueLimit } = flags
  if (flags.adminHost !== undefined && adminPort === undefined)
    throw new PlantsError('malformed', '--admin-host needs --admin-port', { hint: 'Add --admin-port 9090' })
  // A drain still answers what the service has received, so the signal does not end its store.
  const clock = { signal: new AbortController().signal, now: io.now, random: io.random }
  const storeOptions = { ...settings.storeOptions, clock, batchLimit: flags.batchLimit }
  return {
    // It would not be a line of the log.
    openStore: (watch) => openStoreWithTokens(settings.store, { ...storeOptions, ...watch, onCreated: undefined }),
    openTokenSource: (tokens, warn) => {
      warnOfRights('--tls-key', flags.tlsKey, io, warn)
      warnOfRights('--token-file', tokenFile, io, warn)
      const mayShow = isInteractive(flags, io) && io.stderr.isTerminal
      return tokenSourceFor(tokens, { tokenFile, allow: flags.allow, mayShow, settings, io, warn })
    },
    listen: socket === undefined ? { host, port } : { path: io.resolvePath(socket) },
    onlyCreate: flags.onlyCreate === true,
    basePath: flags.basePath ?? '',
    tls: await tlsFor(flags, io),
    admin: adminPort === undefined ? undefined : { host: adminHost, port: adminPort, isAdmin: true },
    limits: { bodyLimit, headerLimit, headerTimeout, requestTimeout, keepAlive, connectionLimit, queueLimit },
    log: { output: io.stderr, level: flags.logLevel },
    now: () => performance.now(), // at half the price of the one that starts fast
  }
}

/** Warns of a file of secrets that is not for this user alone. */
function warnOfRights(flag: string, given: string | undefined, io: Io, warn: (message: string) => void): void {
  const path = given === undefined ? undefined : io.resolvePath(given)
  const stats = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false })
  if (path === undefined || !stats || process.platform === 'win32') return
  if (!io.trusts(stats.uid)) warn(`The file of ${flag}, ${path}, belongs to another user (uid ${stats.uid}), who can read and change it`)
  else if ((stats.mode & 0o077) !== 0)
    warn(`Others can read or write ${path}, the file of ${flag}. Change that with: chmod 600 ${shellWord(path)}`)
}

async function tlsFor({ tlsCert, tlsKey }: ServeFlags, io: Io): Promise<ServiceOptions['tls']> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined)
    throw new PlantsError('malformed', 'TLS needs a certificate and its key', { hint: 'Give both --tls-cert PATH and --tls-key PATH' })
  const [certPath, keyPath] = [io.resolvePath(tlsCert), io.resolvePath(tlsKey)]
  const hint = 'Give PEM files with --tls-cert and --tls-key'
  const tls = { cert: readTextFile(certPath, hint), key: readTextFile(keyPath, hint) }
  const { createSecureContext } = await import('node:tls')
  try {
    createSecureContext(tls)
    return tls
  } catch (error) {
    throw new PlantsError('malformed', `${certPath} and ${keyPath} are not a certificate and its key`, {
      hint: 'Give two PEM files that belong together, the key without a password',
      cause: error,
    })
  }
}
