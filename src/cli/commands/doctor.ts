import { version } from '../../../package.json'
import { commonFormats, parseOutput, parseTimeout } from '../../config/option-values.js'
import { EffectiveSettings } from '../../config/resolve.js'
import { settingNames } from '../../config/setting-table.js'
import { readSettings } from '../../config/settings-file.js'
import { PlantsError } from '../../errors.js'
import { mayColor, type Style, styleFor } from '../../output/output.js'
import { Printer } from '../../output/printer.js'
import { plantCount } from '../../plant/plant.js'
import { escapeControlChars, redact } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { type HttpAddress, isDefaultStore, type SqliteAddress } from '../../stores/address.js'
import type { OwnStore } from '../../stores/store.js'
import { describeMissingRights, type Right, rights } from '../../stores/tokens.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { accessTo } from '../store-access.js'

interface DoctorOptions extends GlobalOptions {
  quick?: true
}

export function define(command: PlantsCommand): void {
  command
    .description(
      'Check the settings and the store of this run. The exit code is 1 if a check fails.',
    )
    .option('--quick', 'do not read the contents: check only whether the store can be used')
    .addExamples('plants doctor --quick')
    .handler(doctor)
}

async function doctor(options: DoctorOptions, io: Io): Promise<void> {
  const { output, timeout } = options
  // A wrong option is no finding.
  const chosen = output === undefined ? undefined : parseOutput('--output', output, commonFormats)
  if (timeout !== undefined) parseTimeout('--timeout', timeout)
  const context = await contextOrError(options, io)
  const usual = io.stdout.isTerminal ? 'text' : 'ndjson'
  const format = chosen ?? (context instanceof PlantsError ? usual : context.output)
  const style = await styleFor(mayColor(io.stdout, options, io))
  const text = (findings: Finding[]) => findings.map((each) => lineOf(each, style)).join('')
  const printer = new Printer<Finding>(io, format, { text })
  // What stdout shows may be sent to somebody who is asked for help.
  const shown = (words: string) => redact(words, io)
  let failures = 0
  for await (const { check, state, message, hint } of examine(context, options)) {
    if (state === 'failed') failures += 1
    const words = { message: shown(message), hint: hint && shown(hint) }
    await printer.rows([{ check: shown(check), state, ...words }])
  }
  await printer.end()
  if (failures === 0) return
  const message = failures === 1 ? 'One check failed' : `${failures} checks failed`
  throw new PlantsError('unwell', message, { hint: 'See the hints above' })
}

interface CheckResult {
  state: 'ok' | 'warning' | 'failed'
  message: string
  hint?: string | undefined
}

interface Finding extends CheckResult {
  check: string
}

function lineOf({ check, state, message, hint }: Finding, style: Style): string {
  const styles = { ok: style.faint, warning: style.strong, failed: style.bad }
  const text = `${style.strong(escapeControlChars(check))}: ${escapeControlChars(message)}`
  const advice = hint === undefined ? '' : `         ${style.faint(escapeControlChars(hint))}\n`
  return `${styles[state](state.padEnd(7))}  ${text}\n${advice}`
}

/** All settings are read, and their first error is a finding. */
async function contextOrError(
  options: DoctorOptions,
  io: Io,
): Promise<CommandContext | PlantsError> {
  try {
    const settings = new EffectiveSettings({ options, io, file: await readSettings(io) })
    for (const name of settingNames) settings.value(name)
    return new CommandContext(settings, await settings.address(), options, io)
  } catch (error) {
    if (error instanceof PlantsError) return error
    throw error
  }
}

/** Changes nothing, and yields each finding as soon as it is available. */
async function* examine(
  context: CommandContext | PlantsError,
  { quick }: DoctorOptions,
): AsyncGenerator<Finding> {
  const { bun, node } = process.versions
  const runtime = bun === undefined ? `node ${node}` : `bun ${bun}`
  const system = `${process.platform} ${process.arch}`
  yield { check: 'runtime', ...ok(`plants ${version} on ${runtime}, ${system}`) }
  yield await findingOf('sqlite', async () => {
    const sqlite = (await import('../../platform/sqlite.js')).describeDriver()
    return ok(`SQLite ${sqlite.version} through ${sqlite.driver}`)
  })
  yield await findingOf('settings', async () => {
    if (context instanceof PlantsError) throw context
    const { path, warning } = context.settings.file
    return warning ? warned(warning.what, `Fix it with: ${warning.command}`) : ok(path)
  })
  if (context instanceof PlantsError) return
  const { address, settings } = context
  const name = settings.storeName ?? (isDefaultStore(address) ? 'local' : address.name)
  const store = await findingOf(`store ${name}`, () =>
    address.scheme === 'http' ? examineService(address, context) : examineStore(context),
  )
  yield store
  if (address.scheme === 'sqlite' && store.state !== 'failed' && !quick)
    yield await findingOf('contents', () => examineContents(address, context))
}

async function findingOf(check: string, examine: () => Promise<CheckResult>): Promise<Finding> {
  try {
    return { check, ...(await examine()) }
  } catch (error) {
    if (!(error instanceof PlantsError) || error.isInterruption) throw error
    return { check, state: 'failed', message: error.message, hint: error.hint }
  }
}

async function examineStore(context: CommandContext): Promise<CheckResult> {
  const { address } = context
  const { name } = address
  const store = await context.openOwnStore()
  if (!store) return ok(`${name} (not created yet)`)
  const missing = await checkUsable(store).finally(() => store.close())
  if (missing.includes('create')) {
    // A store that this user can only read may be meant so.
    return warned(`${name}: ${describeMissingRights(missing)}`, missingRightsHint)
  }
  const exposure = address.scheme === 'sqlite' ? await findExposure(name) : undefined
  if (exposure !== undefined) return warned(exposure)
  return ok(missing.length === 0 ? name : `${name}: ${describeMissingRights(missing)}`)
}

const missingRightsHint =
  'Change the permissions of the file, or see Least privilege in docs/databases.md'

/**
 * Rejects if the store can do nothing, or not even what its rights say.
 *
 * @returns the rights that the credentials lack
 */
async function checkUsable(store: OwnStore): Promise<readonly Right[]> {
  const storeRights = await store.rights()
  const missing = rights.filter((right) => !storeRights.includes(right))
  if (storeRights.length === 0) {
    const message = describeMissingRights(missing)
    throw new PlantsError('inaccessible', message, { hint: missingRightsHint })
  }
  await store.check(storeRights)
  return missing
}

async function findExposure(name: string): Promise<string | undefined> {
  const { explainExposure } = await import('../../stores/sqlite/connection.js')
  return explainExposure(name)
}

async function examineService(address: HttpAddress, context: CommandContext): Promise<CheckResult> {
  const { timeout, io } = context
  const access = await accessTo(address, context)
  const { verifyToken } = await import('../../stores/http/check-token.js')
  const result = await verifyToken(address, { access, timeout, runtime: io })
  if (result.state === 'accepted') return ok(`${address.name} answers, and accepts the token`)
  const { message, hint = 'Is it a Plant Store service? For details: plants doctor --verbose' } =
    result.error
  const rejection = result.state === 'rejected' ? `${address.name} does not accept the token: ` : ''
  return { state: 'failed', message: rejection + message, hint }
}

async function examineContents(
  { name }: SqliteAddress,
  { sqliteOptions }: CommandContext,
): Promise<CheckResult> {
  const { examine } = await import('../../stores/sqlite/backup.js')
  const plants = await examine(name, sqliteOptions)
  return ok(plants === undefined ? 'none yet' : `${plantCount(plants)} read, and no damage found`)
}

function ok(message: string): CheckResult {
  return { state: 'ok', message }
}

function warned(message: string, hint?: string): CheckResult {
  return { state: 'warning', message, hint }
}
