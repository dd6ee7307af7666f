import { accessSync, constants, statSync } from 'node:fs'
import { checkToken } from '../auth/token.js'
import { PlantsError, systemCode } from '../platform/errors.js'
import type { Io } from '../platform/io.js'
import { readTextFile } from '../platform/text-files.js'
import { parseText } from '../platform/values.js'
import { changingTokens, digestOf, fixedTokens, isUsable, newToken, type TokenSource, tokensOfStore } from '../server/authenticator.js'
import { defaultRights, type Right, type TokenStore } from '../stores/store.js'
import type { Settings } from './context.js'

interface TokenSourceOptions {
  tokenFile: string | undefined
  /** what the tokens allow that no store keeps */
  allow: readonly Right[]
  /** whether somebody sees what is printed, so that a first token can be made */
  mayShow: boolean
  settings: Settings
  io: Io
  warn(message: string): void
}

/** characters below which a token can be guessed */
const minTokenLength = 16

/**
 * Who may use a service: those with a token from PLANTS_SERVE_TOKEN or from a file, if there is one of these, else those
 * with a token of the store. On a terminal a store without one gets one, which is printed there.
 *
 * @throws {PlantsError} `unauthorized` when there is no valid token, `malformed` for tokens that are none
 */
export async function tokenSourceFor(tokens: TokenStore, options: TokenSourceOptions): Promise<TokenSource> {
  const { tokenFile, allow, io, warn } = options
  const given = io.env['PLANTS_SERVE_TOKEN'] ? io.env['PLANTS_SERVE_TOKEN'].trim() : undefined
  const fixed =
    given === undefined ? undefined : fixedTokens(new Map([[checkToken(given, 'PLANTS_SERVE_TOKEN'), 'PLANTS_SERVE_TOKEN']]), allow)
  if (given !== undefined && given.length < minTokenLength) warn('PLANTS_SERVE_TOKEN is short enough to be guessed')
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
    const note = 'made by plants serve'
    await tokens.add(digestOf(token), { note, rights: defaultRights, createdAt: new Date(io.time()), expiresAt: undefined })
    const use = 'Who uses the service gives it as PLANTS_TOKEN, or to: plants auth login'
    await io.stderr.write(`The store had no token. This one is shown only now:\n\n  ${token}\n\n${use}\n`)
  } else if (!isAnyUsable) {
    const message = `${settings.store.name} has no token that is valid, so nobody could use the service`
    const hint = `Make one with: plants tokens create${settings.storeFlag}. Or set PLANTS_SERVE_TOKEN, or give --token-file PATH`
    throw new PlantsError('unauthorized', message, { hint })
  }
  return tokensOfStore(tokens, { now: io.now, time: io.time, warn })
}

/** The tokens in a file, which is read again when it has changed; one that is broken changes nothing. */
function fileTokens(path: string, { allow, io, warn }: TokenSourceOptions): TokenSource {
  let version = versionOf(path)
  return changingTokens(
    readTokens(path),
    allow,
    () => {
      const now = versionOf(path)
      if (now === version) return undefined
      version = now
      try {
        return readTokens(path)
      } catch (error) {
        if (!(error instanceof PlantsError)) throw error
        warn(`${error.message}. The tokens that were in it before are still accepted`)
        return undefined
      }
    },
    io.now,
  )
}

/** Changes with the file, its rights, and whether it can be read at all. */
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

/** The tokens in a file, and the lines on which they stand. */
function readTokens(path: string): ReadonlyMap<string, string> {
  const lines = readTextFile(path, 'Give a file of tokens, one a line, with --token-file').split(/\r?\n/)
  const tokens = lines.flatMap((line, index): [string, string][] => {
    const name = `line ${index + 1}`
    return line.trim() === '' ? [] : [[checkToken(line.trim(), `The token in ${path}, ${name},`), `${name} of the token file`]]
  })
  if (tokens.length > 0) return new Map(tokens)
  throw new PlantsError('malformed', `${path} holds no token`, { hint: 'Write one a line into it' })
}
