import { type Credential, findToken, noToken, tokenVariable } from '../../auth/credentials.js'
import { assertNotExposed } from '../../auth/exposure.js'
import { findPassword, type Password } from '../../auth/password.js'
import { failureOf } from '../../auth/token.js'
import { changeSettings } from '../../config/change.js'
import { withField } from '../../config/edit.js'
import { namedStores } from '../../config/resolve.js'
import { quoteIfNeeded, writeAnswer, writeResult, writeRows } from '../../output/output.js'
import { toJson } from '../../plant/exact-json.js'
import { malformed, PlantsError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { readText } from '../../platform/text-files.js'
import { isLoginAddress, type PostgresAddress, type RemoteAddress } from '../../stores/common/address.js'
import { loginAddress, schemeOfText, schemes, takesCredential, takesToken } from '../../stores/registry.js'
import { resolveSettings, type Settings } from '../context.js'
import { type CommandDefinition, defineCommand } from '../define-command.js'
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
      assertNotExposed(store, settings)
    }
    const noun = nounOf(store)
    const secret = await readSecret(flags.fromStdin === true, store, settings, io)
    const check = await checkSecret(secret, store, settings, io)
    if (check.state === 'rejected') {
      const message = `${store.name} does not accept this ${noun}: ${check.error.message}`
      const hint = 'Nothing was saved. Copy it again, or ask for a new one'
      throw new PlantsError('unauthorized', message, { ...check.error, hint })
    }
    const savedAt = new Date(io.time()).toISOString()
    const names = namesOf(store, settings)
    const saved = { [names.address]: { token: secret, savedAt } }
    await changeSettings(io, settings, (file) => ({ ...file, tokens: { ...file.tokens, ...saved } }))
    const checked = check.state === 'accepted'
    if (!checked) {
      const { message, type, hint } = check.error
      const advice = type === 'rejected' && hint !== undefined ? `. ${hint}` : ''
      await settings.warn(`The ${noun} is saved, but could not be checked: ${message}${advice}`)
    }
    const variable = setVariable(store, io)
    if (variable) await settings.warn(`${variable} is still set, and takes precedence`)
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
    const store = credentialStore(settings)
    const names = namesOf(store, settings)
    const { before, after } = await changeSettings(io, settings, (saved) =>
      saved.tokens === undefined ? saved : { ...saved, tokens: withField(saved.tokens, names.address, undefined) },
    )
    const removed = after !== before
    const variable = setVariable(store, io)
    if (variable) await settings.warn(`${variable} is still set`)
    if (settings.tokenCommand !== undefined) await settings.warn(`${settings.storeName} still has a token command`)
    const text = `${removed ? 'Removed the' : 'There was no saved'} ${nounOf(store)} for ${displayName(names)}`
    await writeResult(io, settings, { ...names, removed }, text)
  },
})

const status = defineCommand({
  name: 'status',
  description:
    'Show the source of the token or the password of the store and, without --store, what else is saved, but not the secrets. The exit code is 3 if there is none.',
  async run({ flags }, io) {
    const settings = await resolveSettings(flags, io)
    const { saved, path = '' } = settings.file
    const store = flags.store !== undefined || takesCredential(settings.store) ? credentialStore(settings) : undefined
    const found = store && (await findCredential(store, settings, io))
    const { source, savedAt, expires } = found ?? { source: 'none' }
    const own: Status[] = store ? [{ ...namesOf(store, settings), source, savedAt, expires }] : []
    const others = Object.entries(flags.store === undefined ? (saved.tokens ?? {}) : {})
      .filter(([address]) => address !== own[0]?.address && isLoginAddress(address))
      .map(([address, entry]): Status => ({ store: address, address, source: 'file', savedAt: entry.savedAt }))
    const text = async () => (lines: Status[]) => lines.map((line) => statusLine(line, path)).join('')
    await writeRows(io, settings, [[...own, ...others]], { text })
    if (store && !found) throw noCredential(store, settings)
    const hint = 'Save one with: plants auth login --store https://plants.example.com'
    if (!store && others.length === 0) throw new PlantsError('unauthorized', 'No token is saved', { hint })
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

function credentialStore({ store, file: { saved } }: Settings): CredentialAddress {
  if (takesCredential(store)) return store
  const [name] = namedStores(saved).find(([, { address }]) => schemes[schemeOfText(address)].credential) ?? []
  const hint = `Select a store: --store ${name ?? 'https://plants.example.com'}`
  throw malformed(`${store.name} is a file, and uses no token`, hint)
}

function nounOf(store: CredentialAddress): 'token' | 'password' {
  return takesToken(store) ? 'token' : 'password'
}

async function readSecret(
  fromStdin: boolean,
  store: CredentialAddress,
  { storeFlag, mayAsk, colors }: Settings,
  io: Io,
): Promise<string> {
  const noun = nounOf(store)
  const clean = (text: string) => (takesToken(store) ? text.trim() : text.replace(/\r?\n$/, ''))
  const failureIn = (text: string) => (takesToken(store) ? failureOf(clean(text)) : passwordFailureOf(clean(text)))
  if (fromStdin && !io.stdin.isTerminal) {
    const text = await readText('-', io, {
      wanted: `Pipe the ${noun} to stdin`,
      tooLarge: `Pipe nothing but the ${noun} to stdin`,
    })
    const failure = failureIn(text)
    if (failure === undefined) return clean(text)
    throw malformed(`The ${noun} on stdin ${failure}`, `Copy the ${noun} again, without any other text`)
  }
  const hint = `Read it from stdin: plants auth login${storeFlag} --from-stdin < FILE`
  if (!mayAsk()) throw malformed(`Cannot prompt for the ${noun}`, hint)
  const { askForSecret } = await import('../prompts.js')
  const check = (text: string) => {
    const failure = failureIn(text)
    return failure && `A ${noun} ${failure}`
  }
  return clean(await askForSecret(`${noun} for ${quoteIfNeeded(loginAddress(store))}`, check, colors(io.stderr), io))
}

/** PostgreSQL accepts about 1000 bytes; a line break is a mistake. */
function passwordFailureOf(text: string): string | undefined {
  if (text === '') return 'is empty'
  if (Buffer.byteLength(text) > 1000) return 'is longer than 1000 bytes'
  return /[\0\r\n]/.test(text) ? 'contains a line break or U+0000' : undefined
}

async function checkSecret(secret: string, store: CredentialAddress, settings: Settings, io: Io) {
  const { storeOptions } = settings
  if (takesToken(store)) {
    io.secrets.add(secret) // `loginTo` adds a password
    const { verifyToken } = await import('../../stores/http/check-token.js')
    const access = await accessTo(store, settings, io, { token: secret, source: 'file', place: 'this login' })
    return verifyToken(store, access, storeOptions)
  }
  const { checkPassword } = await import('../../stores/postgres/postgres-check.js')
  return checkPassword(store, { ...storeOptions, login: () => loginTo(store, settings, io, secret) })
}

function setVariable(store: CredentialAddress, io: Io): string | undefined {
  if (takesToken(store)) return tokenVariable(io) && 'PLANTS_TOKEN'
  if (store.scheme === 'postgres' && store.password !== undefined) return 'The password in the address'
  return io.env['PGPASSWORD'] && 'PGPASSWORD'
}

async function findCredential(store: CredentialAddress, settings: Settings, io: Io) {
  if (takesToken(store)) {
    const found = await findToken(store, settings, io)
    return found && { ...found, secret: found.token }
  }
  const found = await findPassword(store, settings, io)
  const secret = store.hosts.map((host) => found?.of(host)).find((text) => text !== undefined)
  return found && secret !== undefined ? { ...found, secret, expires: undefined } : undefined
}

function noCredential(store: CredentialAddress, { storeFlag }: Settings): PlantsError {
  if (takesToken(store)) return noToken(store, storeFlag)
  const hint = `If it requires one: set PGPASSWORD, or save it with: plants auth login${storeFlag}`
  return new PlantsError('unauthorized', `There is no password for ${store.name}`, { hint })
}

interface Status {
  /** its name, or its address if it has no name */
  store: string
  /** of its saved credential */
  address: string
  source: Credential['source'] | Password['source'] | 'none'
  savedAt?: string | undefined
  expires?: string | undefined
}

function namesOf(store: CredentialAddress, { storeName }: Settings) {
  return { store: storeName ?? loginAddress(store), address: loginAddress(store) }
}

function displayName({ store, address }: Pick<Status, 'store' | 'address'>): string {
  return store === address ? quoteIfNeeded(store) : `${store} (${quoteIfNeeded(address)})`
}

function statusLine({ source, savedAt, expires, ...names }: Status, path: string): string {
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
