import { type Credential, findToken, noToken, savedToken, tokenVariable } from '../../auth/credentials.js'
import { assertNotExposed } from '../../auth/exposure.js'
import { findPassword, noPassword, type Password } from '../../auth/password.js'
import { failureOf } from '../../auth/token.js'
import { changeSettings } from '../../config/change.js'
import { withField } from '../../config/edit.js'
import { namedStores } from '../../config/resolve.js'
import { quoteIfNeeded, recordPrinter, writeAnswer, writeResult } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import { malformed, PlantsError, shellWord } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { readText } from '../../platform/text-files.js'
import type { CredentialCheck } from '../../stores/common/access.js'
import { isLoginAddress, type PostgresAddress, type RemoteAddress } from '../../stores/common/address.js'
import { loginAddress, schemeOfText, schemes, takesCredential, takesPassword, takesToken } from '../../stores/registry.js'
import { resolveSettings, type Settings } from '../context.js'
import { type CommandDefinition, defineCommand, type GlobalFlags } from '../define-command.js'
import { accessTo, loginTo, warnOfExposure } from '../store-access.js'

const login = defineCommand({
  name: 'login',
  description:
    'Save the token or the password of the store, from a prompt or from stdin. It is saved as plain text in the settings file, which only you can read.',
  options: [{ flags: '--with-token, --from-stdin', description: 'read the token or the password from stdin' }],
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { storeName, tokenCommand } = settings
    const store = credentialStore(settings)
    if (takesToken(store)) {
      const hint = `Renew the token where the command reads it, or remove the command: plants config unset stores.${storeName}.token-command`
      if (tokenCommand !== undefined) throw malformed(`${storeName} gets its token from a command`, hint)
      assertNotExposed(store, settings, io)
    }
    const noun = nounOf(store)
    const secret = await readSecret(flags.fromStdin === true, noun, settings, io)
    const verdict = await checkSecret(secret, store, settings, io)
    if (verdict.state === 'refused') {
      const { message, status, requestId, error } = verdict.error
      const again = takesToken(store)
        ? 'Copy the token again, or ask the operator of the service for a new one: plants tokens create'
        : 'Enter it again, or ask the administrator of the database for a new one'
      const what = `${store.name} does not accept this ${noun}: ${message}`
      throw new PlantsError('unauthorized', what, { hint: `Nothing was saved. ${again}`, status, requestId, error })
    }
    const savedAt = new Date(io.time()).toISOString()
    const names = namesOf(settings)
    const saved = { [names.address]: { token: secret, savedAt } }
    await changeSettings(io, settings, (file) => ({ ...file, tokens: { ...file.tokens, ...saved } }))
    const checked = verdict.state === 'accepted'
    if (!checked) {
      const { message, type, hint } = verdict.error
      const advice = type === 'rejected' && hint !== undefined ? `. ${hint}` : ''
      await settings.warn(`The ${noun} is saved, but could not be checked: ${message}${advice}`)
    }
    for (const other of otherSources(settings, io)) if (other) await settings.warn(`${other}, and takes precedence`)
    await warnOfExposure(store, settings)
    const text = `Saved the ${noun} for ${displayName(names)}${checked ? ', which accepts it' : ''}`
    await writeResult(io, settings, { ...names, source: 'file', savedAt, checked }, text)
  },
})

const logout = defineCommand({
  name: 'logout',
  description: 'Remove the saved token or password of the store.',
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const noun = nounOf(credentialStore(settings))
    const names = namesOf(settings)
    const { before, after } = await changeSettings(io, settings, (saved) =>
      saved.tokens === undefined ? saved : { ...saved, tokens: withField(saved.tokens, names.address, undefined) },
    )
    const removed = after !== before
    for (const other of otherSources(settings, io)) if (other) await settings.warn(other)
    const text = `${removed ? `Removed the ${noun}` : `There was no saved ${noun}`} for ${displayName(names)}`
    await writeResult(io, settings, { ...names, removed }, text)
  },
})

const status = defineCommand({
  name: 'status',
  description:
    'Show the source of the token or the password of each store, but not the secret itself. The exit code is 3 if there is none.',
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { store, file } = settings
    const own = flags.store !== undefined || takesCredential(store) ? credentialStore(settings) : undefined
    const all: Status[] = []
    let failure: PlantsError | undefined
    try {
      if (own) all.push(statusOf(settings, await findCredential(own, settings, io)))
    } catch (error) {
      if (!(error instanceof PlantsError && error.type === 'unauthorized')) throw error
      failure = error // of its token command: the other stores are listed even then
    }
    const ownSource = all[0]?.source
    if (flags.store === undefined) all.push(...(await otherStatuses(settings, flags, io)))
    const text = async () => (lines: Status[]) => lines.map((line) => statusLine(line, file.path)).join('')
    const { print, end } = await recordPrinter(io, settings, { text })
    await print(all)
    await end()
    if (failure) throw failure
    if (ownSource !== 'none' && all.some(({ source }) => source !== 'none')) return
    if (own) throw noCredential(own, settings)
    const hint = `Save one with: plants auth login --store ${shellWord(all[0]?.store ?? 'https://plants.example.com')}`
    throw new PlantsError('unauthorized', 'No store has a token', { hint })
  },
})

const token = defineCommand({
  name: 'token',
  description: 'Print the token or the password of the store, for use by other programs.',
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const store = credentialStore(settings)
    const found = await findCredential(store, settings, io)
    if (!found) throw noCredential(store, settings)
    const { secret, source, savedAt, expires } = found
    const text = settings.errors === 'json' ? toJson({ [nounOf(store)]: secret, source, savedAt, expires }) : secret
    await writeAnswer(io, `${text}\n`)
  },
})

export const auth: CommandDefinition = {
  name: 'auth',
  description:
    'Manage the token of a service, or the password of a database. It is saved in your settings file, and sent only to the address of the store.',
  commands: [login, logout, status, token],
  examples: [
    'plants auth login --store https://plants.example.com',
    'plants auth login --store https://plants.example.com --from-stdin < token.txt',
    'plants auth status --store https://plants.example.com',
  ],
}

type CredentialAddress = RemoteAddress | PostgresAddress

/** The store of the run. Throws `malformed` if it uses no token or password. */
function credentialStore({ store, file: { saved } }: Pick<Settings, 'store' | 'file'>): CredentialAddress {
  if (takesCredential(store)) return store
  const names = namedStores(saved).flatMap(([name, { address }]) => (schemes[schemeOfText(address)].credential ? name : []))
  const others = names.length > 1 ? ` (or ${names.slice(1, 5).join(', ')})` : ''
  const hint = names.length === 0 ? 'Select a service: --store https://plants.example.com' : `Select a store: --store ${names[0]}${others}`
  throw malformed(`${store.name} is a file, and uses no token`, hint)
}

function nounOf(store: CredentialAddress) {
  return takesToken(store) ? 'token' : 'password'
}

async function readSecret(
  fromStdin: boolean,
  noun: ReturnType<typeof nounOf>,
  { store, storeFlag, mayAsk, colors }: Pick<Settings, 'store' | 'storeFlag' | 'mayAsk' | 'colors'>,
  io: Io,
): Promise<string> {
  const clean = (text: string) => (noun === 'token' ? text.trim() : text.replace(/\r?\n$/, ''))
  const check = (text: string, what: string) => {
    const why = noun === 'token' ? failureOf(clean(text)) : passwordFailureOf(clean(text))
    return why && `${what} ${why}`
  }
  if (fromStdin && !io.stdin.isTerminal) {
    const text = await readText('-', io, { wanted: `Pipe the ${noun} to stdin`, tooLarge: `Pipe nothing but the ${noun} to stdin` })
    const failure = check(text, `The ${noun} on stdin`)
    if (failure === undefined) return clean(text)
    throw malformed(failure, `Copy the ${noun} again, without any other text`)
  }
  if (!mayAsk()) throw malformed(`Cannot prompt for the ${noun}`, `Read it from stdin: plants auth login${storeFlag} --from-stdin < FILE`)
  const { askForSecret } = await import('../prompts.js')
  const message = `${noun} for ${quoteIfNeeded(loginAddress(store))}`
  return clean(await askForSecret(message, (text) => check(text, `A ${noun}`), colors(io.stderr), io))
}

/** PostgreSQL accepts about 1000 bytes; a line break is a mistake. */
function passwordFailureOf(text: string): string | undefined {
  if (text === '') return 'is empty'
  if (Buffer.byteLength(text) > 1000) return 'is longer than 1000 bytes'
  return /[\0\r\n]/.test(text) ? 'contains a line break or U+0000' : undefined
}

async function checkSecret(secret: string, store: CredentialAddress, settings: Settings, io: Io): Promise<CredentialCheck> {
  const { storeOptions } = settings
  if (takesToken(store)) {
    io.secrets.add(secret) // `loginTo` adds a password
    const { checkToken } = await import('../../stores/http/check-token.js')
    return checkToken(store, await accessTo(store, settings, io, { token: secret, source: 'file', place: 'this login' }), storeOptions)
  }
  const { checkPassword } = await import('../../stores/postgres/inspect.js')
  return checkPassword(store, { ...storeOptions, login: () => loginTo(store, settings, io, secret) })
}

/** The sources that take precedence over a saved credential, in sentences. */
function otherSources({ store, storeName, tokenCommand }: Settings, io: Io) {
  if (takesToken(store)) return [tokenVariable(io) && 'PLANTS_TOKEN is still set', tokenCommand && `${storeName} still has a token command`]
  const isInAddress = store.scheme === 'postgres' && store.password !== undefined
  return [isInAddress && 'The address still contains a password', io.env['PGPASSWORD'] && 'PGPASSWORD is still set']
}

type Found = Pick<Status, 'source' | 'savedAt' | 'expires'>

async function findCredential(store: CredentialAddress, settings: Settings, io: Io): Promise<(Found & { secret: string }) | undefined> {
  if (takesToken(store)) {
    const found = await findToken(store, settings, io)
    return found && { ...found, secret: found.token }
  }
  const found = await findPassword(store, settings, io)
  const secret = store.hosts.map((host) => found?.of(host)).find((text) => text !== undefined)
  return found && secret !== undefined ? { ...found, secret } : undefined
}

function noCredential(store: CredentialAddress, { storeFlag }: Pick<Settings, 'storeFlag'>): PlantsError {
  return takesToken(store) ? noToken(store, storeFlag) : noPassword(store, storeFlag)
}

interface Status {
  /** the name of a store, or its address if it has no name */
  store: string
  /** the address under which its credential is saved */
  address: string
  source: Credential['source'] | Password['source'] | 'none'
  savedAt?: string | undefined
  expires?: string | undefined
}

type Names = Pick<Status, 'store' | 'address'>

function namesOf({ store, storeName }: Pick<Settings, 'store' | 'storeName'>): Names {
  return { store: storeName ?? loginAddress(store), address: loginAddress(store) }
}

function displayName({ store, address }: Names): string {
  return store === address ? quoteIfNeeded(store) : `${store} (${quoteIfNeeded(address)})`
}

function statusOf(settings: Settings, found: Found | undefined): Status {
  return { ...namesOf(settings), source: found?.source ?? 'none', savedAt: found?.savedAt, expires: found?.expires }
}

function statusLine({ source, savedAt, expires, ...names }: Status, path = ''): string {
  const isDatabase = schemes[schemeOfText(names.address)].credential === 'password'
  const words = {
    address: 'from its address',
    variable: `from ${isDatabase ? 'PGPASSWORD' : 'PLANTS_TOKEN'}`,
    command: `from its token command${expires === undefined ? '' : `, valid until ${expires}`}`,
    file: `saved on ${quoteIfNeeded(savedAt?.slice(0, 16) ?? '')}Z in ${quoteIfNeeded(path)}`,
    'password-file': 'from the password file',
    none: `no ${isDatabase ? 'password' : 'token'}`,
  }
  return `${displayName(names)}: ${words[source]}\n`
}

/**
 * The other saved stores, and the addresses with a saved credential. Runs no token command, because it may prompt, and
 * warns about invalid settings of a store.
 */
async function otherStatuses({ storeName, store, file, warn }: Settings, flags: GlobalFlags, io: Io): Promise<Status[]> {
  const named: Status[] = []
  for (const [name] of namedStores(file.saved).filter(([other]) => other !== storeName)) {
    try {
      const other = await resolveSettings(flags, io, { other: name, file })
      if (takesPassword(other.store)) named.push(statusOf(other, await findCredential(other.store, other, io)))
      if (!takesToken(other.store)) continue
      const saved = savedToken(file.saved, other.store.name)
      named.push(statusOf(other, other.tokenCommand ? { source: 'command' } : saved && { source: 'file', savedAt: saved.savedAt }))
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      await warn(error.message)
    }
  }
  const known = new Set([loginAddress(store), ...named.map(({ address }) => address)])
  const nameless = Object.entries(file.saved.tokens ?? {}).filter(([address]) => !known.has(address) && isLoginAddress(address))
  return [...named, ...nameless.map(([address, { savedAt }]) => ({ store: address, address, source: 'file' as const, savedAt }))]
}
