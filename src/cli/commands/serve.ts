import { once } from 'node:events'
import { statSync } from 'node:fs'
import { Option } from 'commander'
import { parseToken } from '../../auth/token.js'
import {
  duration,
  invalidValue,
  parseBasePath,
  parseCount,
  parseText,
  wholeNumber,
} from '../../config/option-values.js'
import { toJson } from '../../plant/exact-json.js'
import { isWindows, PlantsError, usageError } from '../../platform/errors.js'
import { escapeControlChars, redact, redactJson } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { type Runtime, within } from '../../platform/runtime.js'
import { shellWord } from '../../platform/shell.js'
import { urlOf } from '../../platform/urls.js'
import {
  digestOf,
  fixedToken,
  isValid,
  newToken,
  tokensOfStore,
} from '../../server/authenticator.js'
import type { ServiceOptions, StoreEvents } from '../../server/service.js'
import { isDefaultStore } from '../../stores/common/address.js'
import {
  defaultRights,
  type Right,
  rights,
  type TokenStore,
} from '../../stores/common/token-store.js'
import { type OwnStoreOpener, postgresOpener, sqliteOpener } from '../../stores/registry.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { parseRights, rightsRule } from '../options.js'

/** Applied later than commander's defaults, because --port conflicts with --socket. */
const defaultPort = 4010

const loopback = '127.0.0.1'

const parsePort = wholeNumber('a port', 0, 65_535, '4010')
const parseTimer = duration('a duration from 1ms to 24d', 1, 24 * 86_400_000, '30s')

function parseSize(flag: string, text: string): number {
  const [, amount = '', unit = ''] = /^([1-9]\d{0,11})(B|KiB|MiB|GiB)?$/i.exec(text) ?? []
  const bytes =
    parseInt(amount, 10) *
    ({ kib: 1024, mib: 1_048_576, gib: 1_073_741_824 }[unit.toLowerCase()] ?? 1)
  if (!(bytes <= 1_073_741_824))
    throw invalidValue(flag, 'a size up to 1GiB, such as 1MiB, 16KiB or 65536', text, '1MiB')
  return bytes
}

export interface ServeOptions extends GlobalOptions {
  host: string
  port?: number
  socket?: string
  cors?: string[]
  basePath?: string
  adminPort?: number
  adminHost?: string
  tlsCert?: string
  tlsKey?: string
  allow?: readonly Right[]
  /** In bytes. */
  bodyLimit: number
  /** In milliseconds. */
  requestTimeout: number
  connectionLimit: number
  /** In milliseconds. */
  drainTimeout: number
  logLevel: 'info' | 'warn' | 'error' | 'silent'
}

export function defineServe(command: PlantsCommand, io: Io): void {
  command
    .description('Serve a store over HTTP. Prints its address on stdout, and its log on stderr.')
    .value('--host <host>', 'address to listen on; 0.0.0.0 for all', parseText, loopback)
    .addOption(
      new Option(
        '-p, --port <port>',
        `port to listen on: ${defaultPort} (default); 0 for any free one`,
      )
        .argParser((text) => parsePort('--port', text))
        .conflicts('socket'),
    )
    .value('--socket <path>', 'listen on a Unix socket instead', parseText)
    .value('--base-path <prefix>', 'path prefix of /plants, such as /v1', parseBasePath)
    .option(
      '--cors <origin...>',
      'let pages of this origin use the service; * for any; repeatable',
      parseOrigin,
    )
    .value('--admin-port <port>', '/live, /ready and /metrics, without a token', parsePort)
    .value('--admin-host <host>', `address for --admin-port: ${loopback} (default)`, parseText)
    .choice('--log-level <level>', 'what to log', ['info', 'warn', 'error', 'silent'], 'info')
    .optionsGroup('Security:')
    .value('--tls-cert <path>', 'PEM certificate, with its chain', parseText)
    .value('--tls-key <path>', 'PEM key of the certificate', parseText)
    .value('--allow <rights>', `what to offer; by default all, ${rightsRule}`, parseRights)
    .optionsGroup('Limits:')
    .value('--body-limit <size>', 'maximum size of a request body', parseSize, '1MiB')
    .value('--request-timeout <duration>', 'maximum time for a request', parseTimer, '30s')
    .value('--connection-limit <count>', 'maximum number of open connections', parseCount, '10000')
    .value('--drain-timeout <duration>', 'maximum time for a drain', parseTimer, '10s')
    .addExamples(
      'plants tokens create --note laptop',
      'plants serve',
      'plants serve --store ./garden.db --port 0 --base-path /v1',
    )
    .handler((options: ServeOptions) => serve(options, io))
}

export async function serve(options: ServeOptions, io: Io): Promise<void> {
  const context = await CommandContext.from(options, io)
  const { startService } = await import('../../server/service.js')
  const service = await startService(await serviceOptions(options, context))
  try {
    const signal = io.handleSignals() // handled from here on: whoever reads the address may send one at once
    const text = context.reporter.isJson ? toJson({ address: service.address }) : service.address
    // On a terminal, the log has shown it. Like a log line: a slow or closed reader does not block the service.
    const isShown = io.stdout.isTerminal && io.stderr.isTerminal && options.logLevel === 'info'
    if (!isShown || context.reporter.isJson)
      void io.stdout.log(`${io.stdout.isTerminal ? escapeControlChars(text) : text}\n`)
    if (context.isInteractive && !context.reporter.isQuiet && !context.reporter.isJson)
      void io.stderr.log(`Try: ${tryIt(service.address, options, io)}\nCtrl-C stops the service\n`)
    if (!signal.aborted) await once(signal, 'abort')
  } finally {
    await service.drain(options.drainTimeout)
    // At most a second, because the reader of the log may have stalled.
    await within(1000, [], (signal) => Promise.race([io.stderr.log(''), once(signal, 'abort')]))
  }
}

/** A command that shows that the service answers. Its description needs no token. */
function tryIt(
  address: string,
  { socket, basePath = '', allow }: ServeOptions,
  { env, resolvePath }: Io,
): string {
  const mayRead = allow?.includes('read') ?? !env['PLANTS_SERVE_TOKEN']
  const to =
    socket === undefined
      ? ''
      : `--unix-socket ${shellWord(escapeControlChars(resolvePath(socket)))} `
  const url = socket === undefined ? address : `http://localhost${basePath}`
  return `curl ${to}${mayRead ? `-H "Authorization: Bearer TOKEN" ${url}/plants` : `${url}/openapi.json`}`
}

async function serviceOptions(
  options: ServeOptions,
  context: CommandContext,
): Promise<ServiceOptions> {
  const { address: store, storeFlag, timeout, io } = context
  const { socket, host, port = defaultPort, adminHost = loopback, adminPort } = options
  if (socket !== undefined && isWindows)
    throw usageError('--socket does not work on Windows', 'Use --port instead')
  if (options.adminHost !== undefined && adminPort === undefined)
    throw usageError('--admin-host needs --admin-port', 'Add --admin-port 9090')
  // A drain still answers requests in flight: the signal must not abort operations of the store.
  const never = new AbortController().signal
  const runtime = { handleSignals: () => never, now: io.now, random: io.random }
  const { PLANTS_SERVE_TOKEN: variable } = io.env
  const given = variable ? parseToken(variable.trim(), 'PLANTS_SERVE_TOKEN') : undefined
  const mayShowToken = context.isInteractive
  let needsToken = false
  return {
    openStore: async (events) => {
      // A missing store has no tokens. Only the default one is created for its first token, which a terminal shows.
      if (given === undefined && !(isDefaultStore(store) && mayShowToken)) {
        const existing = await (await context.ownOpener()).openExisting()
        const hint = `Check the address. To create a store, and a token for clients: plants tokens create${storeFlag}`
        if (!existing) throw context.noStore(hint)
        await existing.close()
      }
      return (await openerFor(context, runtime, events)).open()
    },
    openTokenSource: async (tokens, warn) => {
      warnOfPermissions(options.tlsKey, io, warn)
      if (given === undefined) {
        needsToken = await needsFirstToken(tokens, mayShowToken, context)
        return tokensOfStore(tokens, io.now, io.time)
      }
      if (given.length < minTokenLength)
        warn('The token of PLANTS_SERVE_TOKEN is so short that it can be guessed')
      return fixedToken(given, { name: 'PLANTS_SERVE_TOKEN', rights: options.allow ?? ['create'] })
    },
    onListening: async (tokens) => {
      if (needsToken) await createFirstToken(tokens, io)
    },
    listen: socket === undefined ? { host, port } : { path: io.resolvePath(socket) },
    allow: options.allow ?? rights,
    basePath: options.basePath ?? '',
    cors: options.cors ?? [],
    tls: await tlsFor(options, io),
    admin:
      adminPort === undefined ? undefined : { host: adminHost, port: adminPort, isAdmin: true },
    limits: {
      bodyLimitBytes: options.bodyLimit,
      requestTimeoutMs: options.requestTimeout,
      connectionLimit: options.connectionLimit,
    },
    timeoutMs: timeout,
    log: {
      output: io.stderr,
      level: options.logLevel,
      delayMs: io.stderr.isTerminal ? 0 : 100,
      redact: (lines) => (io.stderr.isTerminal ? redact(lines, io) : redactJson(lines, io)),
    },
    now: () => performance.now(), // cheaper per call than io.now
  }
}

async function openerFor(
  context: CommandContext,
  runtime: Runtime,
  { onAway, onCreated }: StoreEvents,
): Promise<OwnStoreOpener> {
  const address = context.ownAddress()
  if (address.scheme === 'sqlite')
    return sqliteOpener(address, { ...context.sqliteOptions, runtime, onCreated })
  return postgresOpener(address, {
    ...(await context.postgresOptions(address)),
    runtime,
    onAway,
  })
}

/** As `new URL(…).origin` writes it, which is what browsers send. */
function parseOrigin(text: string, before: string[] = []): string[] {
  if (text === '*' || urlOf(text)?.origin === text) return [...before, text]
  throw invalidValue('--cors', 'an origin without a path, or *', text, 'https://garden.example.com')
}

function warnOfPermissions(
  tlsKey: string | undefined,
  io: Io,
  warn: (message: string) => void,
): void {
  if (tlsKey === undefined || isWindows) return
  const path = io.resolvePath(tlsKey)
  const { mode = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {}
  if ((mode & 0o077) !== 0)
    warn(
      `Other users can read the file ${path} of --tls-key. Fix it with: chmod 600 ${shellWord(path)}`,
    )
}

async function tlsFor({ tlsCert, tlsKey }: ServeOptions, io: Io): Promise<ServiceOptions['tls']> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined)
    throw usageError(
      'TLS needs a certificate and its key',
      'Add both --tls-cert PATH and --tls-key PATH',
    )
  const { readKeyPair } = await import('../../platform/certificates.js')
  return readKeyPair(io.resolvePath(tlsCert), io.resolvePath(tlsKey), '--tls-cert and --tls-key')
}

/** In characters. Shorter tokens can be guessed. */
const minTokenLength = 16

/** True if the store never had a token. Throws `unauthorized` without a valid one, unless a first one may be shown. */
async function needsFirstToken(
  tokens: TokenStore,
  mayShow: boolean,
  { address, storeFlag, io }: CommandContext,
) {
  let isEmpty = true
  for await (const page of tokens.list()) {
    isEmpty = false
    if (page.some((token) => isValid(token, io.time()))) return false
  }
  if (isEmpty && mayShow) return true
  const message = `${address.name} has no valid token, so no client could use the service`
  const hint = `Create one with: plants tokens create${storeFlag}. Or set PLANTS_SERVE_TOKEN`
  throw new PlantsError('unauthorized', message, { hint })
}

async function createFirstToken(tokens: TokenStore, io: Io): Promise<void> {
  const token = newToken()
  const createdAt = new Date(io.time())
  await tokens.add(digestOf(token), {
    note: 'created by plants serve',
    rights: defaultRights,
    createdAt,
    expiresAt: undefined,
  })
  const made = 'The store had no tokens. This new token is not shown again:'
  const use = 'Clients set it as PLANTS_TOKEN, or save it with: plants auth login --store ADDRESS'
  await io.stderr.write(`${made}\n\n  ${token}\n\n${use}\n`)
}
