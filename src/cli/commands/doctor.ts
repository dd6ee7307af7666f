import { version } from '../../../package.json'
import { commonFormats, parseOutput } from '../../config/option-values.js'
import { EffectiveSettings } from '../../config/resolve.js'
import { optionValue, settingNames, settingOf, textOf } from '../../config/setting-table.js'
import { readSettings } from '../../config/settings-file.js'
import { mayColor, type Style, styleFor } from '../../output/output.js'
import { Printer } from '../../output/printer.js'
import { plantCount } from '../../plant/plant.js'
import { PlantsError } from '../../platform/errors.js'
import { escapeControlChars, redact } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import {
  type HttpAddress,
  isDefaultStore,
  type SqliteAddress,
} from '../../stores/common/address.js'
import type { GlobalOptions, PlantsCommand } from '../command.js'
import { CommandContext } from '../command-context.js'
import { accessTo } from '../store-access.js'
import { runtimeName } from './version.js'

interface DoctorOptions extends GlobalOptions {
  quick?: true
}

export function define(command: PlantsCommand): void {
  command
    .description(
      'Check the settings, the store of this run and its contents. The exit code is 1 if a check fails.',
    )
    .option('--quick', 'do not read the contents: check only whether the store opens')
    .addExamples('plants doctor', 'plants doctor --output json', 'plants doctor --quick')
    .handler(doctor)
}

async function doctor(options: DoctorOptions, io: Io): Promise<void> {
  // A wrong option is a mistake of this command line, and no finding.
  for (const name of settingNames) {
    const text = textOf(optionValue(name, options))
    if (text !== undefined) settingOf(name).parse(`--${name}`, text)
  }
  const { output } = options
  const given = output === undefined ? undefined : parseOutput('--output', output, commonFormats)
  const context = await contextOrError(options, io)
  const saved = context instanceof PlantsError ? undefined : context.output
  const format = given ?? saved ?? (io.stdout.isTerminal ? 'text' : 'ndjson')
  const style = await styleFor(mayColor(io.stdout, options, io))
  const text = (findings: Finding[]) => findings.map((each) => lineOf(each, style)).join('')
  const printer = new Printer<Finding>(io, format, { text })
  let failures = 0
  for await (const finding of examine(context, options)) {
    if (finding.state === 'failed') failures += 1
    await printer.rows([redacted(finding, io)])
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

/** What stdout shows may be sent to somebody who is asked for help. */
function redacted({ check, state, message, hint }: Finding, io: Io): Finding {
  const shown = { check: redact(check, io), state, message: redact(message, io) }
  return { ...shown, hint: hint && redact(hint, io) }
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
  const runtime = `plants ${version} on ${runtimeName()}, ${process.platform} ${process.arch}`
  yield { check: 'runtime', state: 'ok', message: runtime }
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
  const store = await findingOf(`store ${name}`, () => examineStore(context))
  yield store
  if (quick || store.state === 'failed') return
  if (address.scheme === 'sqlite')
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

function examineStore(context: CommandContext): Promise<CheckResult> {
  const { address } = context
  if (address.scheme === 'sqlite') return examineFile(address, context)
  if (address.scheme === 'postgres') return examineDatabase(context)
  return examineService(address, context)
}

async function examineFile(
  { name }: SqliteAddress,
  { sqliteOptions }: CommandContext,
): Promise<CheckResult> {
  const { Connection, exposureHint, whyExposed } = await import('../../stores/sqlite/connection.js')
  const { isWritable, permissionHint } = await import('../../stores/sqlite/errors.js')
  const store = await Connection.open(name, sqliteOptions)
  store?.close()
  const exposure = store && whyExposed(store.path)
  if (exposure !== undefined) return warned(exposure, exposureHint)
  if (isWritable(name)) return ok(store ? name : `${name} (not created yet)`)
  // A store that this user can only read may be meant so.
  const state = store ? 'warning' : 'failed'
  const message = `The store ${name} cannot be written by this user`
  return { state, message, hint: permissionHint }
}

async function examineDatabase(context: CommandContext): Promise<CheckResult> {
  const { name } = context.address
  const store = await (await context.ownOpener()).open()
  const rights = await store.rights().finally(() => store.close())
  if (rights.includes('create')) return ok(name)
  const hint = 'The owner of the database can grant it: see Least privilege in docs/databases.md'
  return warned(`${name}: there is no right to create plants`, hint)
}

async function examineService(address: HttpAddress, context: CommandContext): Promise<CheckResult> {
  const { timeout, io } = context
  const access = await accessTo(address, context)
  const { verifyToken } = await import('../../stores/http/check-token.js')
  const result = await verifyToken(address, { access, timeout, runtime: io })
  if (result.state === 'accepted') return ok(`${address.name} answers, and accepts the token`)
  const { message, hint = 'Is it a Plant Store service? For details: plants create --verbose' } =
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
  return ok(
    plants === undefined ? 'there are none yet' : `${plantCount(plants)} read, and no damage found`,
  )
}

function ok(message: string): CheckResult {
  return { state: 'ok', message }
}

function warned(message: string, hint: string | undefined): CheckResult {
  return { state: 'warning', message, hint }
}
