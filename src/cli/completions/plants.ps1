# Completion of plants for PowerShell. Run these commands once, which add it to your profile:
#   if (!(Test-Path $PROFILE)) { New-Item -Force $PROFILE }
#   Add-Content $PROFILE 'plants completion powershell | Out-String | Invoke-Expression'

Register-ArgumentCompleter -Native -CommandName plants -ScriptBlock {
    param($word, $line, $cursor)

    # The line up to the cursor, with the space that the syntax tree leaves out. A native program would lose double quotes.
    $text = "$line".PadRight($cursor).Substring(0, $cursor - $line.Extent.StartOffset).Replace('"', "'")
    # A colon alone means that no file can follow, which PowerShell has no way to say.
    foreach ($candidate in @(plants __complete powershell $text 2>$null) -ne ':') {
        $name, $meaning = $candidate -split "`t", 2
        if (-not $meaning) { $meaning = $name }
        [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $meaning)
    }
}
