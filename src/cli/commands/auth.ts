import { type Credential, findToken, noToken, savedToken, tokenVariable } from '../../auth/credentials.js'
import { assertNotExposed } from '../../auth/exposure.js'
import { findPassword, noPassword, type Password, redactPassword } from '../../auth/password.js'
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
import { kindOfText, kinds, loginAddress, takesCredential, takesToken } from '../../stores/registry.js'
import { resolveSettings, type Settings } from '../context.js'
import { type CommandDefinition, defineCommand, type GlobalFlags } from '../define-command.js'
import { accessTo, loginTo, warnOfExposure } from '../store-access.js'

const login = defineCommand({
  name: 'login',
  description:
    'Save the token or the password of the store, from a prompt or from stdin. It is saved as plain text in the settings file, which only you can read.',
  options: [{ flags: '--with-token, --from-stdin', description: 'read the token or the password from stdin' }],
  async run({ flags }, io) {
    const { settings, kind } = await credentialFor(flags, io)
    const { noun } = kind
    kind.assertUsable()
    const secret = await readSecret(flags.fromStdin === true, kind, settings, io)
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
    if (!checked) {
      const { message, kind: failure, hint } = verdict.error
      const advice = failure === 'rejected' && hint !== undefined ? `. ${hint}` : ''
      await settings.warn(`The ${noun} is saved, but could not be checked: ${message}${advice}`)
    }
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
    const text = async () => (lines: typeof all) => lines.map((line) => statusLine(line, settings)).join('')
    const { print, end } = await recordPrinter(io, settings, { text })
    await print(all)
    await end()
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
    'plants auth login --store https://plants.example.com --from-stdin < token.txt',
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

async function readSecret(fromStdin: boolean, { noun, clean, failureOf }: CredentialKind, settings: Settings, io: Io): Promise<string> {
  const check = (text: string, what: string) => {
    const why = failureOf(clean(text))
    return why && `${what} ${why}`
  }
  if (fromStdin && !io.stdin.isTerminal) {
    const text = await readText('-', io, { wanted: `Pipe the ${noun} to stdin`, tooLarge: `Pipe nothing but the ${noun} to stdin` })
    const failure = check(text, `The ${noun} on stdin`)
    if (failure === undefined) return clean(text)
    throw malformed(failure, `Copy the ${noun} again, without any other text`)
  }
  if (!settings.mayAsk())
    throw malformed(`Cannot prompt for the ${noun}`, `Read it from stdin: plants auth login${settings.storeFlag} --from-stdin < FILE`)
  const { askForSecret } = await import('../prompts.js')
  const message = `${noun} for ${quoteIfNeeded(loginAddress(settings.store))}`
  return clean(await askForSecret(message, (text) => check(text, `A ${noun}`), settings.colors(io.stderr), io))
}

/** The token of a service, or the password of a database. */
type CredentialKind = ReturnType<typeof credentialKindOf>

function credentialKindOf(store: RemoteAddress | PostgresAddress, settings: Settings, io: Io) {
  return takesToken(store) ? tokenOf(store, settings, io) : passwordOf(store, settings, io)
}

function tokenOf(store: RemoteAddress, settings: Settings, io: Io) {
  const { storeName, tokenCommand, storeFlag, storeOptions } = settings
  return {
    noun: 'token' as const,
    clean: (text: string) => text.trim(),
    failureOf,
    /** Throws `malformed` if a saved credential would not be used. */
    assertUsable: () => {
      const hint = `Renew the token where the command reads it, or remove the command: plants config unset stores.${storeName}.token-command`
      if (tokenCommand !== undefined) throw malformed(`${storeName} gets its token from a command`, hint)
      assertNotExposed(store, settings, io)
    },
    redact: (token: string) => void io.secrets.add(token),
    check: async (token: string): Promise<CredentialCheck> => {
      const { checkToken } = await import('../../stores/http/check-token.js')
      return checkToken(store, await accessTo(store, settings, io, { token, source: 'file', place: 'this login' }), storeOptions)
    },
    hint: 'Copy the token again, or ask the operator of the service for a new one: plants tokens create',
    find: async (): Promise<(Found & { token: string; password?: string }) | undefined> => {
      const { place, ...found } = (await findToken(store, settings, io)) ?? {}
      return 'token' in found ? found : undefined
    },
    /** The source for a store other than the one of this run. Runs no token command. */
    findSource: async (): Promise<Found | undefined> => {
      if (tokenCommand !== undefined) return { source: 'command' }
      const saved = savedToken(settings.file.saved, store.name)
      return saved && { source: 'file', savedAt: saved.savedAt }
    },
    missing: () => noToken(store, storeFlag),
    /** other sources, which take precedence over a saved credential */
    others: () => [
      ...(tokenVariable(io) ? ['PLANTS_TOKEN is still set'] : []),
      ...(tokenCommand === undefined ? [] : [`${storeName} still has a token command`]),
    ],
  }
}

function passwordOf(store: PostgresAddress, settings: Settings, io: Io) {
  const { storeFlag, storeOptions } = settings
  const find = async (): Promise<(Found & { token?: string; password: string }) | undefined> => {
    const found = await findPassword(store, settings, io)
    const password = store.hosts.map((host) => found?.of(host)).find((text) => text !== undefined)
    return found && password !== undefined ? { password, source: found.source, savedAt: found.savedAt } : undefined
  }
  return {
    noun: 'password' as const,
    clean: (text: string) => text.replace(/\r?\n$/, ''),
    /** PostgreSQL accepts about 1000 bytes; a line break is a mistake. */
    failureOf: (text: string): string | undefined => {
      if (text === '') return 'is empty'
      if (Buffer.byteLength(text) > 1000) return 'is longer than 1000 bytes'
      return /[\0\r\n]/.test(text) ? 'contains a line break or U+0000' : undefined
    },
    assertUsable: () => {},
    redact: (password: string) => redactPassword(password, store, io),
    check: async (password: string): Promise<CredentialCheck> => {
      const { checkPassword } = await import('../../stores/postgres/inspect.js')
      return checkPassword(store, { ...storeOptions, login: () => loginTo(store, settings, io, password) })
    },
    hint: 'Enter it again, or ask the administrator of the database for a new one',
    find,
    findSource: find,
    missing: () => noPassword(store, storeFlag),
    others: () => [
      ...(store.password === undefined ? [] : ['The address still contains a password']),
      ...(io.env['PGPASSWORD'] ? ['PGPASSWORD is still set'] : []),
    ],
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

interface Status {
  /** the name of a store, or its address if it has no name */
  store: string
  /** the address under which its credential is saved */
  address: string
  source: Credential['source'] | Password['source'] | 'none'
  savedAt?: string | undefined
  expires?: string | undefined
}

type Found = Pick<Status, 'source' | 'savedAt' | 'expires'>

function statusOf(settings: Settings, found: Found | undefined): Status {
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

/**
 * The status of the other saved stores, and of addresses with a saved credential. Token commands are not run, because they may prompt. Warns
 * about invalid settings, so that the other stores are listed even then.
 */
async function otherStatuses({ storeName, store, file, warn }: Settings, flags: GlobalFlags, io: Io): Promise<Status[]> {
  const named: Status[] = []
  for (const [name] of namedStores(file.saved).filter(([other]) => other !== storeName)) {
    try {
      const other = await resolveSettings(flags, io, { other: name, file })
      if (takesCredential(other.store)) named.push(statusOf(other, await credentialKindOf(other.store, other, io).findSource()))
    } catch (error) {
      if (!(error instanceof PlantsError)) throw error
      await warn(error.message)
    }
  }
  const known = new Set([loginAddress(store), ...named.map(({ address }) => address)])
  const nameless = Object.entries(file.saved.tokens ?? {}).filter(([address]) => !known.has(address) && isLoginAddress(address))
  return [...named, ...nameless.map(([address, { savedAt }]) => ({ store: address, address, source: 'file' as const, savedAt }))]
}

function namesOf({ store, storeName }: Settings): Pick<Status, 'store' | 'address'> {
  return { store: storeName ?? loginAddress(store), address: loginAddress(store) }
}
