import { once } from 'node:events'
import { Option } from 'commander'
import { readServeToken } from '../../auth/token.js'
import {
  createDurationParser,
  createNumberParser,
  createValueError,
  parseNonEmptyString,
} from '../../config/option-values.js'
import { assertDefined, createUsageError, PlantsError } from '../../errors.js'
import { toJson } from '../../plant/json.js'
import { readKeyPair } from '../../platform/certificates.js'
import { escapeControlChars, redact, redactJson } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { parseUrl } from '../../platform/urls.js'
import { createFixedTokenSource, type TokenSource } from '../../server/authenticate.js'
import type { ServiceOptions } from '../../server/service.js'
import { TokenCache } from '../../server/token-cache.js'
import { createNoStoreError } from '../../stores/address.js'
import type { DirectStore } from '../../stores/store.js'
import type { OpenContext } from '../../stores/store-kind.js'
import { formatRights, isValidToken, type Right, type TokenStore } from '../../stores/tokens.js'
import type { PlantsCommand } from '../command.js'
import { type CommandContext, readStoreContext } from '../context.js'
import type { GlobalOptions } from '../global-options.js'
import { openDirect } from '../open-store.js'
import { parseRights, rareOptionsHeading, rightsRule } from '../options.js'

interface ServeOptions extends GlobalOptions {
  host: string
  port: number
  socket?: string
  cors?: string[]
  adminPort?: number
  adminHost?: string
  tlsCert?: string
  tlsKey?: string
  allow?: readonly Right[]
  /** The value of --request-timeout in milliseconds. */
  requestTimeout: number
  connectionLimit: number
  /** The value of --drain-timeout in milliseconds. */
  drainTimeout: number
  logLevel: 'info' | 'warn' | 'error' | 'silent'
}

const loopback = '127.0.0.1'
const defaultPort = '4010'

const parsePort = createNumberParser('a port', 0, 65_535, defaultPort)
const parseLimit = createNumberParser('a whole number', 1, Number.MAX_SAFE_INTEGER, '2000')
const parseTimer = createDurationParser('a duration from 1ms to 24d', 1, 24 * 86_400_000, '30s')

/**
 * Parses one more value of --cors. An origin must be written as `new URL(…).origin` writes it,
 * because it is compared with the string that browsers send:
 * https://developer.mozilla.org/en-US/docs/Web/HTTP/Headers/Origin.
 */
function parseOrigin(text: string, previousOrigins: string[] = []): string[] {
  if (text === '*' || parseUrl(text)?.origin === text) return [...previousOrigins, text]
  throw createValueError(
    '--cors',
    'an origin without a path, or *',
    text,
    'https://garden.example.com',
  )
}

export function define(command: PlantsCommand): void {
  command
    .description(
      `Serve a store over HTTP at http://${loopback}:${defaultPort}, or at another --host and --port. ` +
        'Print the address to stdout and the log to stderr.',
    )
    .value(
      '--allow <rights>',
      `rights to offer, ${rightsRule} (default: all; for PLANTS_SERVE_TOKEN: create)`,
      parseRights,
    )
    .value(
      '--host <host>',
      'address to listen on, or 0.0.0.0 for all IPv4 addresses',
      parseNonEmptyString,
      loopback,
    )
    .value('-p, --port <port>', 'port to listen on, or 0 for any free port', parsePort, defaultPort)
    .option(
      '--cors <origin...>',
      'origins whose web pages may use the service, or "*" for all origins',
      parseOrigin,
    )
    .value(
      '--admin-port <port>',
      'port for /live, /ready and /metrics, which need no token',
      parsePort,
    )
    .choice(
      '--log-level <level>',
      'lowest severity of the messages to log',
      ['info', 'warn', 'error', 'silent'],
      { defaultValue: 'info' },
    )
    .optionsGroup('Security:')
    .value('--tls-cert <path>', 'file with the PEM certificate and its chain', parseNonEmptyString)
    .value('--tls-key <path>', 'file with the PEM private key', parseNonEmptyString)
    .optionsGroup(rareOptionsHeading)
    .addOption(
      new Option('--socket <path>', 'Unix socket to listen on instead of a port, for a proxy')
        .argParser((path) => parseNonEmptyString('--socket', path))
        .conflicts(['host', 'port', 'tlsCert', 'tlsKey']),
    )
    .value(
      '--admin-host <host>',
      `address to listen on for --admin-port (default: ${loopback})`,
      parseNonEmptyString,
    )
    .value('--request-timeout <duration>', 'maximum time to receive a request', parseTimer, '30s')
    .value('--connection-limit <count>', 'maximum number of open connections', parseLimit, '2000')
    .value('--drain-timeout <duration>', 'maximum time for a graceful stop', parseTimer, '10s')
    .addExamples(
      'plants tokens create --note laptop --store ./garden.db',
      'plants serve --store ./garden.db',
    )
    .handler(serve)
}

async function serve(options: ServeOptions, io: Io): Promise<void> {
  const context = await readStoreContext(options, io)
  const { startService } = await import('../../server/service.js')
  const service = await startService(buildServiceOptions(options, context))
  try {
    // A program that has read the address may send a signal at once, so signals are handled first.
    const signal = io.getStopSignal()
    const text = context.reporter.isJson ? toJson({ address: service.address }) : service.address
    // Nothing waits for the reader of the address: a slow one must not keep the service from a
    // drain.
    void io.stdout.log(`${io.stdout.isTerminal ? escapeControlChars(text) : text}\n`)
    if (!signal.aborted) await once(signal, 'abort')
  } finally {
    await service.drain(options.drainTimeout)
  }
}

function buildServiceOptions(options: ServeOptions, context: CommandContext): ServiceOptions {
  const { settings, io } = context
  const { socket, host, port, adminHost, adminPort } = options
  if (adminHost !== undefined && adminPort === undefined)
    throw createUsageError('--admin-host needs --admin-port', 'Add --admin-port 9090')
  // A drain still answers requests in flight: the signal must not abort operations of the store.
  const neverAborted = new AbortController().signal
  const runtime = { getStopSignal: () => neverAborted, now: io.now, random: io.random }
  const fixedToken = readServeToken(io)
  return {
    openStore: (events) => openStoreToServe({ ...events, runtime }, fixedToken, context),
    openTokenSource: async (tokens, offeredRights) =>
      fixedToken === undefined
        ? openStoredTokens(tokens, context)
        : openFixedToken(fixedToken, options.allow ?? ['create'], offeredRights),
    listen: socket === undefined ? { host, port } : { path: io.resolvePath(socket) },
    allow: options.allow,
    cors: options.cors ?? [],
    tls: findTlsFiles(options, io),
    admin: adminPort === undefined ? undefined : { host: adminHost ?? loopback, port: adminPort },
    usesStoreTokens: fixedToken === undefined,
    limits: {
      requestTimeoutMs: options.requestTimeout,
      connectionLimit: options.connectionLimit,
    },
    timeoutMs: settings.timeoutMs,
    log: {
      output: io.stderr,
      level: options.logLevel,
      delayMs: io.stderr.isTerminal ? 0 : 100,
      redact: (lines) => (io.stderr.isTerminal ? redact(lines, io) : redactJson(lines, io)),
    },
  }
}

async function openStoreToServe(
  changes: Partial<OpenContext>,
  fixedToken: string | undefined,
  context: CommandContext,
): Promise<DirectStore> {
  const store = await openDirect(context, 'serve', changes)
  if (store) return store
  // With PLANTS_SERVE_TOKEN, a missing store is created, because in a container there may be nobody
  // to do it. Without that token, tokens are in the store: a new store would have none, and no
  // client could use the service.
  if (fixedToken !== undefined) return assertDefined(await openDirect(context, 'write', changes))
  const hint = `Check its address, or create the store and a token with: ${formatCreateToken(context)}`
  throw createNoStoreError(context.address, hint)
}

/** @throws {PlantsError} `unauthorized` if the token has none of the offered rights */
function openFixedToken(
  token: string,
  tokenRights: readonly Right[],
  offeredRights: readonly Right[],
): TokenSource {
  const name = 'PLANTS_SERVE_TOKEN'
  if (tokenRights.some((right) => offeredRights.includes(right)))
    return createFixedTokenSource(token, { name, rights: tokenRights })
  const rights = formatRights(tokenRights)
  const message = `${name} may only ${rights} plants, which this store does not allow`
  throw new PlantsError('unauthorized', message, { hint: 'Start it with --allow read' })
}

/**
 * Returns a function that looks for the tokens of requests in the store.
 *
 * @throws {PlantsError} `unauthorized` if the store has no valid token
 */
async function openStoredTokens(tokens: TokenStore, context: CommandContext): Promise<TokenSource> {
  const { address, io } = context
  if (await hasValidToken(tokens, io.getTimeMs())) {
    const cache = new TokenCache(tokens, io)
    return (token) => cache.findCaller(token)
  }
  const message = `${address.name} has no valid token, so no client can use the service`
  const hint = `Create a token with: ${formatCreateToken(context)}`
  throw new PlantsError('unauthorized', message, { hint })
}

/** Formats the command that creates a token in the same store. */
function formatCreateToken({ storeFlag }: CommandContext): string {
  return `plants tokens create${storeFlag}`
}

async function hasValidToken(tokens: TokenStore, timeMs: number): Promise<boolean> {
  for await (const page of tokens.list())
    if (page.some((token) => isValidToken(token, timeMs))) return true
  return false
}

function findTlsFiles({ tlsCert, tlsKey }: ServeOptions, io: Io): ServiceOptions['tls'] {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined || tlsKey === undefined)
    throw createUsageError('TLS needs both --tls-cert and --tls-key', 'Add the other option')
  const paths = [io.resolvePath(tlsCert), io.resolvePath(tlsKey)] as const
  return { paths, read: () => readKeyPair(...paths) }
}
