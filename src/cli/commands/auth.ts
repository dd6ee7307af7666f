import {
  assertNotExposed,
  type Credential,
  createNoTokenError,
  findToken,
} from '../../auth/credentials.js'
import { findTokenProblem, parseToken } from '../../auth/token.js'
import { changeSettings, omitKey } from '../../config/change-settings.js'
import type { EffectiveSettings } from '../../config/resolve.js'
import { createUsageError, PlantsError } from '../../errors.js'
import { quoteIfNeeded } from '../../output/output.js'
import type { Io } from '../../platform/io.js'
import { readText } from '../../platform/text-files.js'
import type { TokenCheck, TokenTarget } from '../../stores/credentials.js'
import { requireAbility } from '../../stores/kinds.js'
import type { PlantsCommand } from '../command.js'
import { type CommandContext, readStoreContext } from '../context.js'
import type { GlobalOptions } from '../global-options.js'
import { createOpenContext } from '../open-store.js'
import { printOutcome, printResult, printValue } from '../print.js'
import { findAccess } from '../store-access.js'

interface LoginOptions extends GlobalOptions {
  fromStdin?: true
}

export function define(command: PlantsCommand): void {
  command.description(
    'Log in to a service that somebody else runs. Its token is sent only to its address.',
  )
  command
    .command('login')
    .description('Save the token for the store in plain text, in a file that only you can read.')
    .addExamples(
      'plants auth login --store https://plants.example.com',
      'plants auth login -s https://plants.example.com --from-stdin < token.txt',
    )
    .option('--from-stdin', 'read the token from stdin')
    .handler(login)
  command
    .command('logout')
    .description('Remove the saved token for the store.')
    .addExamples('plants auth logout --store https://plants.example.com')
    .handler(logout)
  command
    .command('status')
    .description(
      'Show where the token for the store comes from. The exit code is 3 if there is no token.',
    )
    .addExamples('plants auth status --store https://plants.example.com')
    .handler(status)
  command
    .command('token')
    .description('Print the token for the store, for use in other programs.')
    .addExamples('plants auth token --store https://plants.example.com')
    .handler(printToken)
}

async function login(options: LoginOptions, io: Io): Promise<void> {
  const context = await readStoreContext(options, io)
  const { address, settings } = context
  const tokenAccess = requireAbility(address, 'token')
  const store = tokenAccess.getTarget(address)
  if (settings.getValue('token-command') !== undefined)
    throw createUsageError(
      `${settings.storeName} gets its token from a command`,
      'Renew the token there',
    )
  assertNotExposed(store, settings)
  const token = await readToken(options, store, context)
  io.secrets.add(token)
  const newToken = { token, source: 'file', origin: 'this login' } as const
  const check = await tokenAccess.verify(address, {
    ...createOpenContext(context),
    findAccess: (target) => findAccess(target, context, newToken),
  })
  assertWorthSaving(check)
  const savedAt = new Date(io.getTimeMs()).toISOString()
  await changeSettings(io, settings.timeoutMs, (savedSettings) => {
    savedSettings.set('tokens', {
      ...savedSettings.get('tokens', {}),
      [store.name]: { token, savedAt },
    })
  })
  const isChecked = check.state === 'accepted'
  if (!isChecked) await context.reporter.warn(`The token was not checked: ${check.error.message}`)
  if (io.env['PLANTS_TOKEN'] !== undefined)
    await context.reporter.warn('PLANTS_TOKEN is still set and takes precedence')
  const acceptance = isChecked ? ', which accepts it,' : ''
  const text = `Saved the token for ${store.name}${acceptance} in ${settings.file.path}`
  await printOutcome(
    { ...describeTarget(store, settings), source: 'file', savedAt, checked: isChecked },
    text,
    context,
  )
}

/**
 * Rejects a token that would be of no use: the service does not accept it, the server is not a
 * Plant Store, or the address is wrong, such as `http://` for a port with TLS. A token is saved for
 * exactly one address, so no command would find it after the address is corrected. A token for a
 * service that is unreachable is saved, because somebody may save tokens before the service runs.
 *
 * @throws {PlantsError} the error of the check
 */
function assertWorthSaving(check: TokenCheck): void {
  if (check.state === 'accepted') return
  const { error } = check
  if (check.state === 'rejected') {
    const hint = 'Nothing was saved: copy the token again'
    throw new PlantsError('unauthorized', error.message, { ...error, hint })
  }
  if (check.state === 'foreign') {
    const { message, status, requestId } = error
    const hint = 'Nothing was saved: the address must be the base URL of a Plant Store'
    const details = { hint, status, requestId, cause: error }
    throw new PlantsError('accessDenied', `This is not a Plant Store: ${message}`, details)
  }
  if (error.kind === 'accessDenied') throw error
}

async function logout(options: GlobalOptions, io: Io): Promise<void> {
  const context = await readStoreContext(options, io)
  const store = findTokenTarget(context)
  const isRemoved = await changeSettings(io, context.settings.timeoutMs, (savedSettings) => {
    const tokens = savedSettings.get('tokens', {})
    const isSaved = Object.hasOwn(tokens, store.name)
    if (isSaved) savedSettings.set('tokens', omitKey(tokens, store.name))
    return isSaved
  })
  if (io.env['PLANTS_TOKEN'] !== undefined) await context.reporter.warn('PLANTS_TOKEN is still set')
  const text = `${isRemoved ? 'Removed the' : 'There is no saved'} token for ${store.name}`
  await printOutcome(
    { ...describeTarget(store, context.settings), removed: isRemoved },
    text,
    context,
  )
}

async function status(options: GlobalOptions, io: Io): Promise<void> {
  const context = await readStoreContext(options, io)
  const store = findTokenTarget(context)
  const { source, origin, savedAt } = await requireToken(store, context)
  const savedClause = savedAt === undefined ? '' : `, saved on ${savedAt.slice(0, 16)}Z`
  const text = `${quoteIfNeeded(store.name)}: from ${quoteIfNeeded(origin + savedClause)}`
  await printResult({ ...describeTarget(store, context.settings), source, savedAt }, text, context)
}

async function printToken(options: GlobalOptions, io: Io): Promise<void> {
  const context = await readStoreContext(options, io)
  const { token, source, savedAt } = await requireToken(findTokenTarget(context), context)
  await printValue(token, { token, source, savedAt }, context)
}

async function requireToken(store: TokenTarget, context: CommandContext): Promise<Credential> {
  const credential = await findToken(store, context.settings, context.io)
  if (credential) return credential
  throw createNoTokenError(store, context.storeFlag)
}

/** @throws {PlantsError} `usage` for a store without tokens */
function findTokenTarget({ address }: CommandContext): TokenTarget {
  return requireAbility(address, 'token').getTarget(address)
}

async function readToken(
  { fromStdin }: LoginOptions,
  store: TokenTarget,
  { io, mayAsk, storeFlag }: CommandContext,
): Promise<string> {
  if (fromStdin && !io.stdin.isTerminal) {
    const text = await readText('-', io, 'Pipe only the token to stdin')
    return parseToken(text.trim(), 'The token on stdin', io)
  }
  if (!mayAsk)
    throw createUsageError(
      'The token must come from stdin, because no prompt is possible here',
      `Read it from stdin: plants auth login${storeFlag} --from-stdin < FILE`,
    )
  const { askForSecret } = await import('../prompts.js')
  const check = (text: string) => {
    const problem = findTokenProblem(text.trim())
    return problem && `A token ${problem}`
  }
  return (await askForSecret(`token for ${store.name}`, check, io)).trim()
}

function describeTarget({ name }: TokenTarget, { storeName }: EffectiveSettings) {
  return { store: storeName ?? name, address: name }
}
