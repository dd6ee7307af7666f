import { accessSync, constants, statSync } from 'node:fs'
import { checkToken } from '../auth/token.js'
import { PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { readTextFile } from '../platform/text-files.js'
import { parseText } from '../platform/values.js'
import { digestOf, fixedTokens, freshness, isUsable, newToken, type TokenSource, tokensOfStore } from '../server/authenticator.js'
import { defaultRights, type Right, type TokenStore } from '../stores/common/store.js'
import type { Settings } from './context.js'

interface TokenSourceOptions {
  tokenFile: string | undefined
  /** rights of the tokens that are not in the store */
  allow: readonly Right[]
  /** whether to create a first token and print it on the terminal */
  mayShow: boolean
  settings: Settings
  io: Io
  warn(message: string): void
}

/** number of characters below which a token can be guessed */
const minTokenLength = 16

/**
 * The tokens that a service accepts: that of PLANTS_SERVE_TOKEN and those of the token file, or those of the store if neither is set.
 * On a terminal, a store without tokens gets a first one, which is printed.
 *
 * @throws {PlantsError} `unauthorized` if there is no valid token, `malformed` for an invalid one
 */
export async function tokenSourceFor(tokens: TokenStore, options: TokenSourceOptions): Promise<TokenSource> {
  const { tokenFile, allow, io, warn } = options
  const given = io.env['PLANTS_SERVE_TOKEN'] ? io.env['PLANTS_SERVE_TOKEN'].trim() : undefined
  const fixed =
    given === undefined ? undefined : fixedTokens(new Map([[checkToken(given, 'PLANTS_SERVE_TOKEN'), 'PLANTS_SERVE_TOKEN']]), allow)
  if (given !== undefined && given.length < minTokenLength) warn('PLANTS_SERVE_TOKEN is so short that it can be guessed')
  if (tokenFile === undefined) return fixed ?? storeTokens(tokens, options)
  const inFile = fileTokens(io.resolvePath(parseText('--token-file', tokenFile)), options)
  return fixed ? (token) => fixed(token) ?? inFile(token) : inFile
}

async function storeTokens(tokens: TokenStore, { mayShow, settings, io, warn }: TokenSourceOptions): Promise<TokenSource> {
  let [isEmpty, isAnyUsable] = [true, false]
  for await (const page of tokens.list()) {
    isEmpty = false
    isAnyUsable = page.some((token) => isUsable(token, io.time()))
    if (isAnyUsable) break
  }
  if (isEmpty && mayShow) {
    const token = newToken()
    const note = 'created by plants serve'
    await tokens.add(digestOf(token), { note, rights: defaultRights, createdAt: new Date(io.time()), expiresAt: undefined })
    const use = 'Clients set it as PLANTS_TOKEN, or save it with: plants auth login'
    await io.stderr.write(`The store had no tokens. This new token is not shown again:\n\n  ${token}\n\n${use}\n`)
  } else if (!isAnyUsable) {
    const message = `${settings.store.name} has no valid token, so no client could use the service`
    const hint = `Create one with: plants tokens create${settings.storeFlag}. Or set PLANTS_SERVE_TOKEN, or add --token-file PATH`
    throw new PlantsError('unauthorized', message, { hint })
  }
  return tokensOfStore(tokens, { now: io.now, time: io.time, warn })
}

/** The tokens in a file, which is read again when it changes. If it is then invalid, its previous tokens are kept. */
function fileTokens(path: string, { allow, io, warn }: TokenSourceOptions): TokenSource {
  let version = versionOf(path)
  let find = fixedTokens(readTokens(path), allow)
  let until = io.now() + freshness
  const refresh = () => {
    until = io.now() + freshness
    const now = versionOf(path)
    if (now === version) return
    version = now
    try {
      find = fixedTokens(readTokens(path), allow)
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      warn(`${error.message}. Its previous tokens are still accepted`)
    }
  }
  return (token) => {
    if (until <= io.now()) refresh()
    return find(token)
  }
}

/** A text that changes with the file, its permissions and its readability. */
function versionOf(path: string): string {
  try {
    accessSync(path, constants.R_OK)
    const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
    return `${ino}:${size}:${mtimeNs}:${ctimeNs}`
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined) throw error
    return code
  }
}

/** The tokens in a file, with their line numbers. */
function readTokens(path: string): ReadonlyMap<string, string> {
  const lines = readTextFile(path, 'Use a file with one token per line for --token-file').split(/\r?\n/)
  const tokens = lines.flatMap((line, index): [string, string][] => {
    const name = `line ${index + 1}`
    return line.trim() === '' ? [] : [[checkToken(line.trim(), `The token in ${path}, ${name},`), `${name} of the token file`]]
  })
  if (tokens.length > 0) return new Map(tokens)
  throw new PlantsError('malformed', `${path} contains no token`, { hint: 'Write one token per line to it' })
}
