import { findToken, noToken, removeToken, saveToken, tokenVariable } from '../access/credentials.js'
import { checkToken, failureOf } from '../access/token.js'
import { namesOf, otherStatuses, ownStatus, type TokenStatus } from '../access/token-status.js'
import { accessTo, refuseOpen } from '../access.js'
import { PlantsError, shellWord, systemCode } from '../errors.js'
import type { GlobalFlags } from '../flags.js'
import { readText } from '../input.js'
import type { Io } from '../io.js'
import { toJson } from '../json.js'
import { readable, warn, writeAnswer, writeResult } from '../output.js'
import type { Settings } from '../settings/preferences.js'
import { isServiceAddress, namedStores } from '../settings/store-name.js'
import { resolveSettings } from '../settings.js'
import { checkToken as checkTokenAt } from '../stores/open.js'
import type { RemoteAddress } from '../stores/store.js'

interface LoginFlags extends GlobalFlags {
  withToken?: boolean
}

export async function login(flags: LoginFlags, io: Io): Promise<void> {
  const { settings, store } = await resolveRemote(flags, io)
  if (settings.tokenCommand !== undefined) {
    const hint = `Renew the token where the command takes it from, or forget the command: plants config unset stores.${settings.storeName}.token-command`
    throw new PlantsError('malformed', `${settings.storeName} takes its token from a command`, { hint })
  }
  refuseOpen(store, settings)
  const token = await readToken(flags, store, settings, io)
  io.secrets.add(token)
  const access = await accessTo(store, settings, io, { token, source: 'file' })
  const verdict = await checkTokenAt(store, access, settings.opening)
  if (verdict.state === 'refused') throw refusedToken(verdict.error, store)
  const savedAt = await saveToken(store, token, settings, io)
  const checked = verdict.state === 'accepted'
  if (!checked) await warn(io, `The token is saved, but could not be checked: ${verdict.error.message}`, settings)
  if (tokenVariable(io)) await warn(io, 'PLANTS_TOKEN is still set, and wins over it', settings)
  const text = `Saved the token for ${calledBy(settings)}${checked ? ', which accepts it' : ''}`
  await writeResult(io, settings, { ...namesOf(settings), source: 'file', savedAt, checked }, text)
}

function refusedToken({ message, status, requestId, error }: PlantsError, { name }: RemoteAddress): PlantsError {
  const hint = 'Nothing was saved. Copy the token again, or ask for a new one where the service is run: plants tokens create'
  return new PlantsError('unauthorized', `${name} does not accept this token: ${message}`, { hint, status, requestId, error })
}

export async function logout(flags: GlobalFlags, io: Io): Promise<void> {
  const { settings, store } = await resolveRemote(flags, io)
  const removed = await removeToken(store, settings, io)
  if (tokenVariable(io)) await warn(io, 'PLANTS_TOKEN is still set', settings)
  if (settings.tokenCommand !== undefined) await warn(io, `${settings.storeName} still has its token command`, settings)
  const text = `${removed ? 'Removed the token' : 'There was no saved token'} for ${calledBy(settings)}`
  await writeResult(io, settings, { ...namesOf(settings), removed }, text)
}

export async function printToken(flags: GlobalFlags, io: Io): Promise<void> {
  const { settings, store } = await resolveRemote(flags, io)
  const found = await findToken(store, settings, io)
  if (!found) throw noToken(store, settings.storeFlag)
  await writeAnswer(io, settings.errors === 'json' ? `${toJson(found)}\n` : `${found.token}\n`, 'Run it again')
}

export async function status(flags: GlobalFlags, io: Io): Promise<void> {
  const settings = await resolveSettings(flags, io)
  if (flags.store !== undefined && settings.store.kind !== 'remote') throw takesNoToken(settings)
  const own = await ownStatus(settings, io)
  const others = flags.store === undefined ? await otherStatuses(settings, flags, io) : []
  const all = [...(own instanceof PlantsError ? [] : own), ...others]
  const lines = all.map((line) => (settings.output === 'json' ? `${toJson(line)}\n` : sentence(line, settings)))
  if (lines.length > 0) await writeAnswer(io, lines.join(''), 'Run it again')
  if (own instanceof PlantsError) throw own
  const missing = own[0]?.source === 'none' || !all.some(({ source }) => source !== 'none')
  if (missing && settings.store.kind === 'remote') throw noToken(settings.store, settings.storeFlag)
  const [{ store = 'https://plants.example.com' } = {}] = others
  const hint = `Save one with: plants auth login --store ${shellWord(store)}`
  if (missing) throw new PlantsError('unauthorized', 'No store has a token', { hint })
}

function sentence({ store, address, source, savedAt, expires }: TokenStatus, { file }: Settings): string {
  const name = store === address ? readable(store) : `${readable(store)} (${readable(address)})`
  const until = expires === undefined ? '' : `, valid until ${expires}`
  const words = {
    variable: 'from PLANTS_TOKEN',
    command: `from its token command${until}`,
    file: `saved on ${readable(savedAt?.slice(0, 16) ?? '')}Z in ${readable(file.path ?? '')}`,
    none: 'no token',
  }
  return `${name}: ${words[source]}\n`
}

/** A store by its name, if it has one, and its address. */
function calledBy({ store, storeName }: Settings): string {
  return storeName === undefined ? readable(store.name) : `${storeName} (${readable(store.name)})`
}

async function readToken(flags: LoginFlags, store: RemoteAddress, settings: Settings, io: Io): Promise<string> {
  if (flags.withToken && !io.stdin.isTerminal) return checkToken((await readStdin(io)).trim(), 'The token on stdin')
  if (!settings.mayAsk()) {
    throw new PlantsError('malformed', 'Nobody can be asked for the token', {
      hint: `Read it from stdin: plants auth login${settings.storeFlag} --with-token < FILE`,
    })
  }
  const { askForToken } = await import('../prompts.js')
  return askForToken(`token for ${readable(store.name)}`, complaintOf, settings.colors(io.stderr), io)
}

async function readStdin(io: Io): Promise<string> {
  try {
    return await readText('-', io)
  } catch (error) {
    if (!(error instanceof PlantsError)) throw error
    const why = error.kind === 'tooLarge' ? 'is too long for a token' : 'is not UTF-8'
    if (error.kind !== 'tooLarge' && systemCode(error.cause) !== 'ERR_ENCODING_INVALID_ENCODED_DATA') throw error
    throw new PlantsError('malformed', `What is on stdin ${why}`, { hint: 'Copy the token again, and nothing else with it', cause: error })
  }
}

function complaintOf(text: string): string | undefined {
  const why = failureOf(text)
  return why && `A token ${why}`
}

async function resolveRemote(flags: GlobalFlags, io: Io): Promise<{ settings: Settings; store: RemoteAddress }> {
  const settings = await resolveSettings(flags, io)
  if (settings.store.kind === 'remote') return { settings, store: settings.store }
  throw takesNoToken(settings)
}

function takesNoToken({ store, file: { saved } }: Settings): PlantsError {
  const names = namedStores(saved).flatMap(([name, { address }]) => (isServiceAddress(address) ? name : []))
  const others = names.length > 1 ? ` (or ${names.slice(1, 5).join(', ')})` : ''
  const hint = names.length === 0 ? 'Name the service: --store https://plants.example.com' : `Name the store: --store ${names[0]}${others}`
  return new PlantsError('malformed', `${store.name} is a file, which takes no token`, { hint })
}
