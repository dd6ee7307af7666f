import type { OpenApiFlags } from '../command-line/service.js'
import { parseBasePath } from '../flags.js'
import type { Io } from '../io.js'
import { writeAnswer } from '../output.js'

export async function printOpenApi({ basePath }: OpenApiFlags, io: Io): Promise<void> {
  const { openApi } = await import('../service/openapi.js')
  await writeAnswer(io, `${openApi(parseBasePath('--base-path', basePath))}\n`, 'Run it again')
}
