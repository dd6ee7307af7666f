import { changeSettings } from '../../config/change.js'
import { withField } from '../../config/edit.js'
import { namedStores } from '../../config/resolve.js'
import { quoteIfNeeded, writeAnswer, writeResult } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import { malformed, PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { readText } from '../../platform/text-files.js'
import { isLoginAddress } from '../../stores/common/address.js'
import { kindOfText, kinds, loginAddress, takesCredential } from '../../stores/registry.js'
import { resolveSettings, type Settings } from '../context.js'
import { type CredentialKind, type CredentialSource, credentialKindOf } from '../credential-kind.js'
import { type CommandDefinition, defineCommand, type GlobalFlags } from '../define-command.js'
import { warnOfExposure } from '../store-access.js'

const login = defineCommand({
  name: 'login',
  description:
    'Save the token or the password of the store, from a prompt or from stdin. It is saved as plain text in the settings file, which only you can read.',
  options: [{ flags: '--with-token', description: 'read the token or the password from stdin' }],
  async run({ flags }, io) {
    const { settings, kind } = await credentialFor(flags, io)
    const { noun } = kind
    kind.refuseUnusable()
    const secret = await readSecret(flags.withToken === true, kind, settings, io)
    kind.redact(secret)
    const verdict = await kind.check(secret)
    if (verdict.state === 'refused') {
      const { message, status, requestId, error } = verdict.error
      const hint = `Nothing was saved. ${kind.hint}`
      const what = `${settings.store.name} does not accept this ${noun}: ${message}`
      throw new PlantsError('unauthorized', what, { hint, status, requestId, error })
    }
    const savedAt = new Date(io.time()).toISOString()
    const saved = { [loginAddress(settings.store)]: { token: secret, savedAt } }
    await changeSettings(io, settings, (file) => ({ ...file, tokens: { ...file.tokens, ...saved } }))
    const checked = verdict.state === 'accepted'
    if (!checked) await settings.warn(`The ${noun} is saved, but could not be checked: ${verdict.error.message}`)
    for (const other of kind.others()) await settings.warn(`${other}, and takes precedence`)
    await warnOfExposure(settings.store, settings)
    const text = `Saved the ${noun} for ${displayName(settings)}${checked ? ', which accepts it' : ''}`
    await writeResult(io, settings, { ...namesOf(settings), source: 'file', savedAt, checked }, text)
  },
})

const logout = defineCommand({
  name: 'logout',
  description: 'Remove the saved token or password of the store.',
  async run({ flags }, io) {
    const { settings, kind } = await credentialFor(flags, io)
    const address = loginAddress(settings.store)
    const { before, after } = await changeSettings(io, settings, (saved) =>
      saved.tokens === undefined ? saved : { ...saved, tokens: withField(saved.tokens, address, undefined) },
    )
    const removed = after !== before
    for (const other of kind.others()) await settings.warn(other)
    const text = `${removed ? `Removed the ${kind.noun}` : `There was no saved ${kind.noun}`} for ${displayName(settings)}`
    await writeResult(io, settings, { ...namesOf(settings), removed }, text)
  },
})

const status = defineCommand({
  name: 'status',
  description:
    'Show the source of the token or the password of each store, but not the secret itself. The exit code is 3 if there is none.',
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { store } = settings
    if (flags.store !== undefined && !takesCredential(store)) throw usesNoToken(settings)
    const kind = takesCredential(store) ? credentialKindOf(store, settings, io) : undefined
    const own = kind && (await ownStatus(kind, settings))
    const others = flags.store === undefined ? await otherStatuses(settings, flags, io) : []
    const all = [...(own && !(own instanceof PlantsError) ? [own] : []), ...others]
    const lines = all.map((line) => (settings.output === 'json' ? `${toJson(line)}\n` : statusLine(line, settings)))
    if (lines.length > 0) await writeAnswer(io, lines.join(''))
    if (own instanceof PlantsError) throw own
    if (own?.source !== 'none' && all.some(({ source }) => source !== 'none')) return
    if (kind) throw kind.missing()
    const [{ store: name = 'https://plants.example.com' } = {}] = others
    throw new PlantsError('unauthorized', 'No store has a token', { hint: `Save one with: plants auth login --store ${shellWord(name)}` })
  },
})

const token = defineCommand({
  name: 'token',
  description: 'Print the token or the password of the store, for use by other programs.',
  async run({ flags }, io) {
    const { settings, kind } = await credentialFor(flags, io)
    const found = await kind.find()
    if (!found) throw kind.missing()
    await writeAnswer(io, settings.errors === 'json' ? `${toJson(found)}\n` : `${found[kind.noun]}\n`)
  },
})

export const auth: CommandDefinition = {
  name: 'auth',
  description:
    'Manage the token of a service, or the password of a database. It is saved in your settings file, and sent only to the address of the store.',
  commands: [login, logout, status, token],
  examples: [
    'plants auth login --store https://plants.example.com',
    'plants auth login --store https://plants.example.com --with-token < token.txt',
    'plants auth status --store https://plants.example.com',
  ],
}

function statusLine({ store, address, source, savedAt, expires }: Status, { file }: Settings): string {
  const name = store === address ? quoteIfNeeded(store) : `${quoteIfNeeded(store)} (${quoteIfNeeded(address)})`
  const until = expires === undefined ? '' : `, valid until ${expires}`
  const isDatabase = kinds[kindOfText(address)].credential === 'password'
  const words = {
    address: 'from its address',
    variable: `from ${isDatabase ? 'PGPASSWORD' : 'PLANTS_TOKEN'}`,
    command: `from its token command${until}`,
    file: `saved on ${quoteIfNeeded(savedAt?.slice(0, 16) ?? '')}Z in ${quoteIfNeeded(file.path ?? '')}`,
    'password-file': 'from the password file',
    none: `no ${isDatabase ? 'password' : 'token'}`,
  }
  return `${name}: ${words[source]}\n`
}

function displayName({ store, storeName }: Settings): string {
  const address = quoteIfNeeded(loginAddress(store))
  return storeName === undefined ? address : `${storeName} (${address})`
}

async function readSecret(withToken: boolean, { noun, clean, failureOf }: CredentialKind, settings: Settings, io: Io): Promise<string> {
  const check = (text: string, what: string) => {
    const why = failureOf(clean(text))
    return why && `${what} ${why}`
  }
  if (withToken && !io.stdin.isTerminal) {
    const text = await readStdin(noun, io)
    const failure = check(text, `The ${noun} on stdin`)
    if (failure === undefined) return clean(text)
    throw malformed(failure, `Copy the ${noun} again, without any other text`)
  }
  if (!settings.mayAsk())
    throw malformed(`Cannot prompt for the ${noun}`, `Read it from stdin: plants auth login${settings.storeFlag} --with-token < FILE`)
  const { askForSecret } = await import('../prompts.js')
  const message = `${noun} for ${quoteIfNeeded(loginAddress(settings.store))}`
  return clean(await askForSecret(message, (text) => check(text, `A ${noun}`), settings.colors(io.stderr), io))
}

async function readStdin(noun: string, io: Io): Promise<string> {
  try {
    return await readText('-', io, { wanted: `Pipe the ${noun} to stdin` })
  } catch (cause) {
    const isTooLarge = cause instanceof PlantsError && cause.kind === 'tooLarge'
    const isUtf8 = !(cause instanceof PlantsError && systemCode(cause.cause) === 'ERR_ENCODING_INVALID_ENCODED_DATA')
    if (!isTooLarge && isUtf8) throw cause
    const hint = `Copy the ${noun} again, without any other text`
    throw malformed(`The text on stdin ${isTooLarge ? `is too long for a ${noun}` : 'is not UTF-8'}`, hint, cause)
  }
}

async function credentialFor(flags: GlobalFlags, io: Io): Promise<{ settings: Settings; kind: CredentialKind }> {
  const settings = await resolveSettings(flags, io)
  if (!takesCredential(settings.store)) throw usesNoToken(settings)
  return { settings, kind: credentialKindOf(settings.store, settings, io) }
}

function usesNoToken({ store, file: { saved } }: Settings): PlantsError {
  const names = namedStores(saved).flatMap(([name, { address }]) => (kinds[kindOfText(address)].credential === undefined ? [] : name))
  const others = names.length > 1 ? ` (or ${names.slice(1, 5).join(', ')})` : ''
  const hint = names.length === 0 ? 'Select a service: --store https://plants.example.com' : `Select a store: --store ${names[0]}${others}`
  return malformed(`${store.name} is a file, and uses no token`, hint)
}

type Status = Omit<CredentialSource, 'source'> & { store: string; address: string; source: CredentialSource['source'] | 'none' }

function statusOf(settings: Settings, found: CredentialSource | undefined): Status {
  return { ...namesOf(settings), source: found?.source ?? 'none', savedAt: found?.savedAt, expires: found?.expires }
}

/** The status of the store of this run, or the error of its token command, so that the other stores are listed even then. */
async function ownStatus(kind: CredentialKind, settings: Settings): Promise<Status | PlantsError> {
  try {
    return statusOf(settings, await kind.find())
  } catch (error) {
    if (error instanceof PlantsError && error.kind === 'unauthorized') return error
    throw error
  }
}

/** The status of the other saved stores, and of addresses with a saved credential. Their token commands are not run, because they may prompt. */
async function otherStatuses(settings: Settings, flags: GlobalFlags, io: Io): Promise<Status[]> {
  const { storeName, store, file } = settings
  const names = namedStores(file.saved).flatMap(([name]) => (name === storeName ? [] : name))
  const named = (await Promise.all(names.map((name) => namedStatus(name, settings, flags, io)))).flat()
  const known = new Set([loginAddress(store), ...named.map(({ address }) => address)])
  const nameless = Object.entries(file.saved.tokens ?? {}).filter(([address]) => !known.has(address) && isLoginAddress(address))
  return [...named, ...nameless.map(([address, { savedAt }]) => ({ store: address, address, source: 'file' as const, savedAt }))]
}

/** The status of a saved store, if it uses a credential. Warns about invalid settings, so that the other stores are listed even then. */
async function namedStatus(name: string, { file, warn }: Settings, flags: GlobalFlags, io: Io): Promise<Status[]> {
  try {
    const settings = await resolveSettings(flags, io, { other: name, file })
    const { store } = settings
    return takesCredential(store) ? [statusOf(settings, await credentialKindOf(store, settings, io).findSource())] : []
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    await warn(error.message)
    return []
  }
}

/** The name of a store, or its address if it has no name, and the address under which its credential is saved. */
function namesOf({ store, storeName }: Settings): { store: string; address: string } {
  return { store: storeName ?? loginAddress(store), address: loginAddress(store) }
}
