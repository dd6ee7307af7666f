import { shellOption } from '../platform/errors.js'
import type { InputOptions } from '../transfer/formats/formats.js'
import type { ImportPlan } from '../transfer/import/importer.js'

export function recordFlags({ format, sheet, encoding, rules }: InputOptions): Record<string, string> {
  const { columns, delimiter, map, idFrom } = rules
  const flags = {
    '--format': format,
    '--sheet': sheet,
    '--encoding': encoding,
    '--delimiter': delimiter === '\t' ? 'tab' : delimiter,
    '--columns': columns?.join(','),
    '--map': mapFlag(map) || undefined,
    '--id-from': idFrom?.toString(),
  }
  return Object.fromEntries(
    Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}

function mapFlag(map: InputOptions['rules']['map']): string {
  return Object.entries(map)
    .map((entry) => entry.join('='))
    .join()
}

/** To import in the same way into the same store, such as ` --store ./garden.db --map 'id=No'`. */
export function givenFlags(storeFlag: string, plan: InputOptions & Pick<ImportPlan, 'ifExists'>): string {
  const flags = recordFlags(plan)
  if (plan.ifExists !== 'error') flags['--if-exists'] = plan.ifExists
  const words = Object.entries(flags).map(([name, value]) => shellOption(name.slice(2), value))
  return storeFlag + words.join('')
}
