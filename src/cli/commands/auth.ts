import { type Credential, isTokenVariableSet, noToken } from '../../auth/credentials.js'
import { failureOf } from '../../auth/token.js'
import { changeSettings, withField } from '../../config/change-settings.js'
import type { EffectiveSettings } from '../../config/resolve.js'
import { quoteIfNeeded } from '../../output/output.js'
import { PlantsError, usageError } from '../../platform/errors.js'
import type { Io } from '../../platform/io.js'
import { readText } from '../../platform/text-files.js'
import { type HttpAddress, isLoginAddress, passwordFile } from '../../stores/common/address.js'
import { schemeNouns } from '../../stores/registry.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { accessTo, assertSafe, tokenFor } from '../store-access.js'

interface LoginOptions extends GlobalOptions {
  fromStdin?: true
}

export function define(command: PlantsCommand): void {
  command
    .description('Manage the token of a service, which is sent only to the address of the store.')
    .addExamples(
      'plants auth login --store https://plants.example.com',
      'plants auth login --store https://plants.example.com --from-stdin < token.txt',
      'plants auth status --store https://plants.example.com',
    )
  command
    .command('login')
    .description('Save the token of the store, as plain text in a file that only you can read.')
    .option('--from-stdin', 'read the token from stdin')
    .handler(login)
  command.command('logout').description('Remove the saved token of the store.').handler(logout)
  command
    .command('status')
    .description(
      'Show where the token is from and, without --store, all that are saved. The exit code is 3 if there is none.',
    )
    .handler(status)
  command
    .command('token')
    .description('Print the token of the store, for use by other programs.')
    .handler(printToken)
}

async function login(options: LoginOptions, io: Io): Promise<void> {
  const context = await CommandContext.from(options, io)
  const { settings, timeout } = context
  const store = serviceOf(context)
  if (settings.value('token-command') !== undefined)
    throw usageError(
      `${settings.storeName} gets its token from a command`,
      'Renew it there, or save the store without it: plants stores add --replace',
    )
  assertSafe(store, settings)
  const token = await readToken(options, store, context)
  io.secrets.add(token)
  const { verifyToken } = await import('../../stores/http/check-token.js')
  const access = await accessTo(store, context, { token, source: 'file', place: 'this login' })
  const check = await verifyToken(store, { access, timeout, runtime: io })
  if (check.state === 'rejected') {
    const message = `${store.name} does not accept this token: ${check.error.message}`
    const hint = 'Nothing was saved. Copy it again, or ask for a new one'
    throw new PlantsError('unauthorized', message, { ...check.error, hint })
  }
  const savedAt = new Date(io.time()).toISOString()
  const saved = { [store.name]: { token, savedAt } }
  await changeSettings(io, timeout, (file) => ({ ...file, tokens: { ...file.tokens, ...saved } }))
  const checked = check.state === 'accepted'
  if (!checked) {
    const { message, kind, hint } = check.error
    const advice = kind === 'rejected' && hint !== undefined ? `. ${hint}` : ''
    await context.warn(`The token is saved, but could not be checked: ${message}${advice}`)
  }
  if (isTokenVariableSet(io)) await context.warn('PLANTS_TOKEN is still set, and takes precedence')
  const text = `Saved the token for ${store.name}${checked ? ', which accepts it' : ''}`
  await context.print({ ...namesOf(store, settings), source: 'file', savedAt, checked }, text)
}

async function logout(options: GlobalOptions, io: Io): Promise<void> {
  const context = await CommandContext.from(options, io)
  const store = serviceOf(context)
  const { isChanged: removed } = await changeSettings(io, context.timeout, (saved) =>
    saved.tokens ? { ...saved, tokens: withField(saved.tokens, store.name, undefined) } : saved,
  )
  if (isTokenVariableSet(io)) await context.warn('PLANTS_TOKEN is still set')
  const text = `${removed ? 'Removed the' : 'There was no saved'} token for ${store.name}`
  await context.print({ ...namesOf(store, context.settings), removed }, text)
}

async function status(options: GlobalOptions, io: Io): Promise<void> {
  const context = await CommandContext.from(options, io)
  const { settings, address, storeFlag } = context
  const isNamed = options.store !== undefined
  const store = isNamed || address.scheme === 'http' ? serviceOf(context) : undefined
  const rows: Status[] = []
  if (store) {
    const found = await tokenFor(store, context)
    const { source, savedAt } = found ?? { source: 'none' as const }
    rows.push({ ...namesOf(store, settings), source, savedAt })
  }
  const { saved, path } = settings.file
  for (const [other, { savedAt }] of Object.entries(isNamed ? {} : (saved.tokens ?? {})))
    if (other !== store?.name && isLoginAddress(other))
      rows.push({ store: other, address: other, source: 'file', savedAt })
  const text = (lines: Status[]) => lines.map((line) => statusLine(line, path)).join('')
  await context.printer({ text }).all([rows])
  if (store && rows[0]?.source === 'none') throw noToken(store, storeFlag)
  const hint = 'Save one with: plants auth login --store https://plants.example.com'
  if (rows.length === 0) throw new PlantsError('unauthorized', 'No token is saved', { hint })
}

interface Status {
  store: string
  address: string
  source: Credential['source'] | 'none'
  savedAt?: string | undefined
}

function statusLine({ address, source, savedAt }: Status, path: string): string {
  const words = {
    variable: 'from PLANTS_TOKEN',
    command: 'from its token command',
    file: `saved on ${quoteIfNeeded(savedAt?.slice(0, 16) ?? '')}Z in ${quoteIfNeeded(path)}`,
    none: 'no token',
  }
  return `${quoteIfNeeded(address)}: ${words[source]}\n`
}

async function printToken(options: GlobalOptions, io: Io): Promise<void> {
  const context = await CommandContext.from(options, io)
  const store = serviceOf(context)
  const found = await tokenFor(store, context)
  if (!found) throw noToken(store, context.storeFlag)
  const { token, source, savedAt } = found
  await context.printWord(token, { token, source, savedAt })
}

function serviceOf({ address: store }: CommandContext): HttpAddress {
  if (store.scheme === 'http') return store
  const hint =
    store.scheme === 'postgres'
      ? `If it requires a password: set PGPASSWORD, or write it to ${passwordFile}`
      : 'Select a store: --store https://plants.example.com, or a saved name'
  throw usageError(`${store.name} is ${schemeNouns[store.scheme]}, and uses no token`, hint)
}

async function readToken(
  { fromStdin }: LoginOptions,
  store: HttpAddress,
  { io, mayAsk, storeFlag }: CommandContext,
): Promise<string> {
  if (fromStdin && !io.stdin.isTerminal) {
    const hint = 'Pipe nothing but the token to stdin'
    const text = (await readText('-', io, { wanted: hint, tooLarge: hint })).trim()
    const failure = failureOf(text)
    if (failure !== undefined) throw usageError(`The token on stdin ${failure}`, hint)
    return text
  }
  if (!mayAsk)
    throw usageError(
      'Cannot prompt for the token',
      `Read it from stdin: plants auth login${storeFlag} --from-stdin < FILE`,
    )
  const { askForSecret } = await import('../prompts.js')
  const check = (text: string) => {
    const failure = failureOf(text.trim())
    return failure && `A token ${failure}`
  }
  return (await askForSecret(`token for ${store.name}`, check, io)).trim()
}

function namesOf({ name }: HttpAddress, { storeName }: EffectiveSettings) {
  return { store: storeName ?? name, address: name }
}
