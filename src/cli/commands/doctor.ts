import { version } from '../../../package.json'
import { commonFormats, parseOutput, parseTimeout } from '../../config/option-values.js'
import { EffectiveSettings } from '../../config/resolve.js'
import { settingNames } from '../../config/setting-table.js'
import { readSettings } from '../../config/settings-file.js'
import { PlantsError } from '../../errors.js'
import { createStyle, type Style } from '../../output/output.js'
import { Printer } from '../../output/printer.js'
import { escapeControlChars, redact } from '../../platform/escape.js'
import type { Io } from '../../platform/io.js'
import { type Finding, runCheck } from '../../stores/diagnose.js'
import { findKind } from '../../stores/kinds.js'
import type { PlantsCommand } from '../command.js'
import { buildContext, type CommandContext } from '../context.js'
import type { GlobalOptions } from '../global-options.js'
import { createOpenContext } from '../open-store.js'

export function define(command: PlantsCommand): void {
  command
    .description('Check the settings and the selected store. The exit code is 1 if a check fails.')
    .addExamples('plants doctor --store ./garden.db')
    .handler(doctor)
}

async function doctor(options: GlobalOptions, io: Io): Promise<void> {
  const { output, timeout } = options
  // A wrong option is an error of this command line, and not a finding about the store.
  const requestedFormat =
    output === undefined ? undefined : parseOutput('--output', output, commonFormats)
  if (timeout !== undefined) parseTimeout('--timeout', timeout)
  const context = await findContext(options, io)
  const defaultFormat = io.stdout.isTerminal ? 'text' : 'ndjson'
  const format =
    requestedFormat ?? (context instanceof PlantsError ? defaultFormat : context.output)
  const style = await createStyle({ io, options })
  const text = (findings: Finding[]) =>
    findings.map((finding) => formatFinding(finding, style)).join('')
  const printer = new Printer<Finding>(io, format, { text })
  // People send this output to others who help them, so it must not contain any secret.
  const redactText = (text: string) => redact(text, io)
  let failureCount = 0
  for await (const { check, state, message, hint } of examine(context)) {
    if (state === 'failed') failureCount += 1
    await printer.printRows([
      {
        check: redactText(check),
        state,
        message: redactText(message),
        hint: hint && redactText(hint),
      },
    ])
  }
  await printer.end()
  if (failureCount === 0) return
  const message = failureCount === 1 ? 'One check failed' : `${failureCount} checks failed`
  throw new PlantsError('checkFailed', message, { hint: 'Follow the hints above' })
}

function formatFinding({ check, state, message, hint }: Finding, style: Style): string {
  const styles = { ok: style.faint, warning: style.strong, failed: style.bad }
  const text = `${style.strong(escapeControlChars(check))}: ${escapeControlChars(message)}`
  const advice = hint === undefined ? '' : `         ${style.faint(escapeControlChars(hint))}\n`
  return `${styles[state](state.padEnd(7))}  ${text}\n${advice}`
}

/**
 * Reads all settings, so that a wrong setting is found even if no check uses it. The first error is
 * returned, not thrown, because the doctor reports it as a finding.
 */
async function findContext(options: GlobalOptions, io: Io): Promise<CommandContext | PlantsError> {
  try {
    const settings = new EffectiveSettings({ options, io, file: await readSettings(io) })
    for (const name of settingNames) settings.getValue(name)
    return { ...buildContext(settings, options, io), address: await settings.findAddress() }
  } catch (error) {
    if (error instanceof PlantsError) return error
    throw error
  }
}

/**
 * Yields each finding as soon as its check is done. No check changes anything.
 *
 * @param context the context; or the error of wrong settings, and then the store is not checked
 */
async function* examine(context: CommandContext | PlantsError): AsyncGenerator<Finding> {
  const { bun, node } = process.versions
  const runtime = bun === undefined ? `node ${node}` : `bun ${bun}`
  const system = `${process.platform} ${process.arch}`
  const message = `plants ${version} on ${runtime}, ${system}`
  yield { check: 'runtime', state: 'ok', message }
  yield await runCheck('sqlite', async () => {
    const sqlite = (await import('../../platform/sqlite.js')).describeDriver()
    return { state: 'ok', message: `SQLite ${sqlite.version} through ${sqlite.driver}` }
  })
  yield await runCheck('settings', async () => {
    if (context instanceof PlantsError) throw context
    const { path, permissionWarning: warning } = context.settings.file
    if (!warning) return { state: 'ok', message: path }
    return { state: 'warning', message: warning.message, hint: `Fix it with: ${warning.command}` }
  })
  if (context instanceof PlantsError) return
  const { address, settings } = context
  const kind = findKind(address)
  const name = settings.storeName ?? (kind.isDefault?.(address) ? 'local' : address.name)
  yield* kind.diagnose(address, { ...createOpenContext(context), storeCheck: `store ${name}` })
}
