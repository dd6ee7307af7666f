import { type GlobalFlags, parseBasePath } from '../flags.js'
import type { Io } from '../io.js'
import { writeAnswer } from '../output.js'

interface OpenApiFlags extends GlobalFlags {
  basePath?: string
}

export async function printOpenApi({ basePath }: OpenApiFlags, io: Io): Promise<void> {
  const { openApi } = await import('../service/openapi.js')
  await writeAnswer(io, `${openApi(parseBasePath('--base-path', basePath))}\n`, 'Run it again')
}
