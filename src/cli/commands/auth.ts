import { noToken } from '../../auth/credentials.js'
import { noPassword } from '../../auth/password.js'
import { removeToken, saveToken } from '../../config/change.js'
import { namedStores, savedKind } from '../../config/store-name.js'
import { readable, warn, writeAnswer, writeResult } from '../../output/output.js'
import { toJson } from '../../plant/json.js'
import { PlantsError, shellWord, systemCode } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { readText } from '../../platform/text-files.js'
import { loginAddress } from '../../stores/shown-address.js'
import { resolveSettings } from '../context.js'
import { type CredentialKind, credentialKindOf } from '../credential-kind.js'
import type { GlobalFlags } from '../flags.js'
import type { Settings } from '../settings.js'
import { namesOf, otherStatuses, ownStatus, type TokenStatus } from './auth-status.js'
import type { LoginFlags } from './settings-spec.js'

export async function login(flags: LoginFlags, io: Io): Promise<void> {
  const { settings, kind } = await resolveLocked(flags, io)
  const { noun } = kind
  kind.refuseUseless()
  const secret = await readSecret(flags, kind, settings, io)
  kind.hide(secret)
  const verdict = await kind.check(secret)
  if (verdict.state === 'refused') throw refusedSecret(verdict.error, kind, settings)
  const savedAt = await saveToken(loginAddress(settings.store), secret, settings, io)
  const checked = verdict.state === 'accepted'
  if (!checked) await warn(io, `The ${noun} is saved, but could not be checked: ${verdict.error.message}`, settings)
  for (const other of kind.others()) await warn(io, `${other}, and wins over it`, settings)
  if (kind.exposure !== undefined) await warn(io, kind.exposure, settings)
  const text = `Saved the ${noun} for ${calledBy(settings)}${checked ? ', which accepts it' : ''}`
  await writeResult(io, settings, { ...namesOf(settings), source: 'file', savedAt, checked }, text)
}

function refusedSecret(
  { message, status, requestId, error }: PlantsError,
  { noun, hint }: CredentialKind,
  { store }: Settings,
): PlantsError {
  return new PlantsError('unauthorized', `${store.name} does not accept this ${noun}: ${message}`, {
    hint: `Nothing was saved. ${hint}`,
    ...{ status, requestId, error },
  })
}

export async function logout(flags: GlobalFlags, io: Io): Promise<void> {
  const { settings, kind } = await resolveLocked(flags, io)
  const removed = await removeToken(loginAddress(settings.store), settings, io)
  for (const other of kind.others()) await warn(io, other, settings)
  const text = `${removed ? `Removed the ${kind.noun}` : `There was no saved ${kind.noun}`} for ${calledBy(settings)}`
  await writeResult(io, settings, { ...namesOf(settings), removed }, text)
}

export async function printToken(flags: GlobalFlags, io: Io): Promise<void> {
  const { settings, kind } = await resolveLocked(flags, io)
  const found = await kind.find()
  await writeAnswer(io, settings.errors === 'json' ? `${toJson(found)}\n` : `${found[kind.noun]}\n`, 'Run it again')
}

export async function status(flags: GlobalFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  const { store, storeFlag } = settings
  if (flags.store !== undefined && store.kind === 'file') throw takesNoToken(settings)
  const own = await ownStatus(settings, io)
  const others = flags.store === undefined ? await otherStatuses(settings, flags, io) : []
  const all = [...(own instanceof PlantsError ? [] : own), ...others]
  const lines = all.map((line) => (settings.output === 'json' ? `${toJson(line)}\n` : sentence(line, settings)))
  if (lines.length > 0) await writeAnswer(io, lines.join(''), 'Run it again')
  if (own instanceof PlantsError) throw own
  if (own[0]?.source !== 'none' && all.some(({ source }) => source !== 'none')) return
  if (store.kind !== 'file') throw store.kind === 'remote' ? noToken(store, storeFlag) : noPassword(store, storeFlag)
  const [{ store: name = 'https://plants.example.com' } = {}] = others
  throw new PlantsError('unauthorized', 'No store has a token', { hint: `Save one with: plants auth login --store ${shellWord(name)}` })
}

function sentence({ store, address, source, savedAt, expires }: TokenStatus, { file }: Settings): string {
  const name = store === address ? readable(store) : `${readable(store)} (${readable(address)})`
  const until = expires === undefined ? '' : `, valid until ${expires}`
  const isDatabase = savedKind(address) === 'postgres'
  const words = {
    address: 'from its address',
    variable: `from ${isDatabase ? 'PGPASSWORD' : 'PLANTS_TOKEN'}`,
    command: `from its token command${until}`,
    file: `saved on ${readable(savedAt?.slice(0, 16) ?? '')}Z in ${readable(file.path ?? '')}`,
    'password-file': 'from the password file',
    none: `no ${isDatabase ? 'password' : 'token'}`,
  }
  return `${name}: ${words[source]}\n`
}

/** A store by its name, if it has one, and its address. */
function calledBy({ store, storeName }: Settings): string {
  const address = readable(loginAddress(store))
  return storeName === undefined ? address : `${storeName} (${address})`
}

async function readSecret(flags: LoginFlags, { noun, clean, failureOf }: CredentialKind, settings: Settings, io: Io): Promise<string> {
  const check = (text: string, what: string) => {
    const why = failureOf(clean(text))
    return why && `${what} ${why}`
  }
  if (flags.withToken && !io.stdin.isTerminal) {
    const text = await readStdin(noun, io)
    const complaint = check(text, `The ${noun} on stdin`)
    if (complaint === undefined) return clean(text)
    throw new PlantsError('malformed', complaint, { hint: `Copy the ${noun} again, and nothing else with it` })
  }
  if (!settings.mayAsk()) {
    throw new PlantsError('malformed', `Nobody can be asked for the ${noun}`, {
      hint: `Read it from stdin: plants auth login${settings.storeFlag} --with-token < FILE`,
    })
  }
  const { askForSecret } = await import('../prompts.js')
  const message = `${noun} for ${readable(loginAddress(settings.store))}`
  return clean(await askForSecret({ message, check: (text) => check(text, `A ${noun}`), isColored: settings.colors(io.stderr) }, io))
}

async function readStdin(noun: string, io: Io): Promise<string> {
  try {
    return await readText('-', io, { wanted: `Pipe the ${noun} in` })
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    const why = error.kind === 'tooLarge' ? `is too long for a ${noun}` : 'is not UTF-8'
    if (error.kind !== 'tooLarge' && systemCode(error.cause) !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error
    throw new PlantsError('malformed', `What is on stdin ${why}`, {
      hint: `Copy the ${noun} again, and nothing else with it`,
      cause: error,
    })
  }
}

async function resolveLocked(flags: GlobalFlags, io: Io): Promise<{ settings: Settings; kind: CredentialKind }> {
  const settings = await resolveSettings(flags, io)
  if (settings.store.kind === 'file') throw takesNoToken(settings)
  return { settings, kind: credentialKindOf(settings.store, settings, io) }
}

function takesNoToken({ store, file: { saved } }: Settings): PlantsError {
  const names = namedStores(saved).flatMap(([name, { address }]) => (savedKind(address) === 'file' ? [] : name))
  const others = names.length > 1 ? ` (or ${names.slice(1, 5).join(', ')})` : ''
  const hint = names.length === 0 ? 'Name the service: --store https://plants.example.com' : `Name the store: --store ${names[0]}${others}`
  return new PlantsError('malformed', `${store.name} is a file, which takes no token`, { hint })
}
