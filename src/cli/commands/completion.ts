import { quoteIfNeeded, writeAnswer } from '../../output/output.js'
import { malformed } from '../../platform/errors.js'
import { shorten } from '../../platform/escape.js'
import { defineCommand } from '../define-command.js'

const shells = ['bash', 'zsh', 'fish', 'powershell'] as const
const names = shells.join(', ').replace(/, (\w+)$/, ' or $1')

export const completion = defineCommand({
  name: 'completion',
  description:
    'Print a script with which a shell completes commands, flags, their values, saved stores and settings. The script calls plants for the candidates, so it never becomes outdated.',
  arguments: [{ name: '[shell]', description: names, values: shells }],
  notes: [
    {
      title: 'Installation',
      lines: [
        'bash, in ~/.bashrc:',
        '  source <(plants completion bash)',
        'zsh, once, then start a new shell (or source the script in ~/.zshrc, after compinit):',
        `  plants completion zsh > "\${fpath[1]}/_plants"`,
        'fish, once:',
        '  plants completion fish > ~/.config/fish/completions/plants.fish',
        'PowerShell, in the file $PROFILE:',
        '  plants completion powershell | Out-String | Invoke-Expression',
        'For an alias of plants, such as p:',
        '  bash: complete -F _plants p   zsh: compdef _plants p   fish: complete -c p -w plants',
      ],
    },
  ],
  examples: ['source <(plants completion bash)', 'plants completion zsh > _plants', 'plants completion fish > plants.fish'],
  async run({ args: [name = ''] }, io) {
    const shell = shells.find((candidate) => candidate === name)
    if (shell === undefined) {
      const [own = ''] = /[^/]*$/.exec(io.env['SHELL'] ?? '') ?? []
      const hint = `For example: plants completion ${shells.find((candidate) => candidate === own) ?? 'bash'}. How to install it: plants completion --help`
      const unknown = `There is no completion for ${quoteIfNeeded(shorten(name))}, only for ${names.replace(' or ', ' and ')}`
      throw malformed(name === '' ? `completion needs a shell: ${names}` : unknown, hint)
    }
    const { scripts } = await import('../completion/scripts.js')
    await writeAnswer(io, scripts[shell])
  },
})
